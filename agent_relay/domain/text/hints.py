"""Word the commands in a text as they are typed where it is shown, and how an extra is installed."""

import re
import shlex
from collections.abc import Collection

from agent_relay.domain.text.names import COMMAND_NAMES

KEY_COMMANDS = frozenset(
    {
        "agents",
        "doctor",
        "handoff",
        "limits",
        "log",
        "metrics",
        "order",
        "packet",
        "recall",
        "relay",
        "sessions",
        "status",
        "stop",
        "undo-handoff",
        "use",
    }
)
"""Commands that the prompt behind the relay key knows; a test compares them with that prompt."""
_OF_SESSION = frozenset({"relay", "stop", "undo-handoff"})
"""Commands that take a session, and are about the one at hand where they are typed without it."""
_SESSION = r"[0-9A-Z]{26}"
# Options without values are all that hints give an agent. A name alone counts at a hint's end only: the same
# words begin sentences about agent-relay itself.
_COMMAND = re.compile(
    rf"agent-relay (?:agent (?P<shadowed>[\w.-]+)|(?P<word><agent>|[A-Za-z][\w-]*))"
    rf"(?: --session (?P<session>{_SESSION}))?(?P<options>(?: --[a-z]+(?:-[a-z]+)*)*)"
    rf"(?: (?P<named>{_SESSION})(?!\w))?(?P<end>(?=[.,;)]|$))?"
)
_BEFORE_HINTS = (": ", ", or ", "then ")
_ELSEWHERE = "\0"
"""Mark before a command that cannot be typed here, until the whole text is known."""
UNNAMED_KEY = "the relay key"
"""Name of the key in a text made where its setting is not known."""
_PRESS = f"press {UNNAMED_KEY} and type "
_TWICE = re.compile(rf"({_PRESS}/use [\w.-]+), or \1")


def render_at_key(text: str, session: str) -> str:
    """Return `text` for the person at the prompt behind the relay key, on the screen of `session`."""
    return _drop_key(_render(text, session, KEY_COMMANDS, is_shell=False))


def render_over_screen(text: str, session: str = "", *, key: str = "") -> str:
    """Return `text` for a person whose keys go to the agent.

    `session` is the one on their screen; without it, every command counts as about that one.
    `key` is the name of their relay key, empty if unknown.
    """
    return name_key(_render(text, session, KEY_COMMANDS, is_shell=False), key)


def name_key(text: str, key: str) -> str:
    """Return `text` with the name `key` in place of `the relay key`; unchanged if `key` is empty."""
    return text.replace(f"press {UNNAMED_KEY}", f"press {key}") if key else text


def render_in_shell(text: str, session: str, known: Collection[str]) -> str:
    """Return `text` for the person in the relay shell, whose commands are `known`."""
    return _drop_key(_render(text, session, known, is_shell=True))


def _drop_key(text: str) -> str:
    """Return `text` for a place where slash commands are typed without the key."""
    return text.replace(_PRESS, "")


def _render(text: str, session: str, known: Collection[str], *, is_shell: bool) -> str:
    """Return `text` with commands as they are typed there; slash commands follow the relay key."""
    if "agent-relay " not in text:
        return text

    def put(match: re.Match[str]) -> str:
        found = _put(match, session, known, is_shell=is_shell) or match[0]
        return f"{_PRESS}{found}" if found.startswith("/") else found

    shown = _TWICE.sub(r"\1", _COMMAND.sub(put, text))
    return shown.replace(f": {_ELSEWHERE}", " (in another terminal): ").replace(_ELSEWHERE, "")


def _put(match: re.Match[str], session: str, known: Collection[str], *, is_shell: bool) -> str:
    """Return what is typed here for one command; empty if it stays unchanged."""
    word, options = match["word"] or "", match["options"]
    about = match["session"] or match["named"] or ""
    is_own = not about or not session or about == session
    if match["shadowed"] or match["session"] or word not in COMMAND_NAMES:
        before = match.string[: match.start()]
        is_alone = match["end"] is not None and before.endswith(_BEFORE_HINTS)
        if not (match["shadowed"] or match["session"] or is_alone):
            return ""
        # In the shell what follows an agent's name is a message to it.
        if not is_own or (is_shell and options):
            return f"!{match[0]}" if is_shell else f"{_ELSEWHERE}{match[0]}"
        return f"/use {match['shadowed'] or word.replace('<agent>', 'AGENT')}{options}"
    if word in known and (is_own or word not in _OF_SESSION):
        named = f" {match['named']}" if match["named"] and word not in _OF_SESSION else ""
        return f"/{word}{options}{named}"
    return f"!{match[0]}" if is_shell else f"{_ELSEWHERE}{match[0]}"


def render_install(extra: str, *, prefix: str, base_prefix: str, executable: str, settings: str) -> str:
    """Return the command for a shell.

    `prefix`, `base_prefix` and `executable` are `sys`'s, `settings` is the text of the environment's
    `pyvenv.cfg`. All of them take the extra's libraries from what is installed: no index needs to have relay.
    """
    wanted = f"'agent-relay[{extra}]'"
    if "/pipx/venvs/" in f"{prefix}/":
        return f"pipx inject agent-relay {wanted}"
    if any(line.partition("=")[0].strip() == "uv" for line in settings.splitlines()):
        # An environment of uv's, `uv tool install` included, has no pip.
        return f"uv pip install --python {shlex.quote(executable)} {wanted}"
    if prefix == base_prefix:
        return f"{shlex.quote(executable)} -m pip install --user {wanted}"
    return f"{shlex.quote(executable)} -m pip install {wanted}"
