"""Run a line typed at the relay prompt, and hint at what can be typed."""

import os

from agent_relay.client.attach.prompt import DETACH, PendingAnswer
from agent_relay.client.pending_answers import Narration, PlainCommand, render_error
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import find_root_above
from agent_relay.domain.text.hints import render_at_key
from agent_relay.domain.text.names import name_limit
from agent_relay.domain.text.plain import quote_reason, render_count
from agent_relay.faces.cli.command_help import render_form_help, render_key_help
from agent_relay.faces.cli.commands import COMMANDS, KEY_COMMANDS, Form
from agent_relay.faces.cli.options import OPEN_LIMIT_S, parse_open_words
from agent_relay.faces.cli.session.slash_commands import (
    asks_for_help,
    check_words,
    find_plain,
    split_words,
    take_text,
)
from agent_relay.store.session_index import read_summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_relay.client.connection import Connection

    Answer = tuple[str, ...] | PendingAnswer


ASK_LIMIT_S = 30.0

_ELSEWHERE = frozenset(("--new", "--session", "--from", "--json"))


class PromptContext:
    """Context of a line typed behind the relay key: session, folder, and how to reach the daemon.

    `size` is the terminal's rows and columns, `modes` are its line discipline's for other programs.
    """

    def __init__(
        self,
        session: str,
        folder: str,
        connect: "Callable[[], Connection]",
        *,
        size: tuple[int, int],
        modes: "Sequence[object]" = (),
    ) -> None:
        self.session = session
        self.folder = folder
        self.connect = connect
        self.size = size
        self.modes = modes


def run_prompt_line(line: str, context: PromptContext) -> "Answer":
    """Return the lines to show for one line typed behind the relay key, or the answer they will come from.

    There are none if the agent's screen shows the outcome. Raises RelayError if it cannot be done.
    """
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if word in {"/help", "/?", "help", "?"}:
        return render_key_help()
    command = KEY_COMMANDS.get(word[1:]) if word.startswith("/") else None
    # Those that are plain commands and nothing else explain themselves.
    is_own = command is not None and (word in _OWN or not command.place)
    if command is not None and is_own and asks_for_help(command, rest):
        return _render_help(command.name, context)
    try:
        found = _answer(word, rest, context)
    except RelayError as error:
        raise render_error(error, context.session) from error
    if isinstance(found, PendingAnswer):
        return found
    return tuple(render_at_key(line, context.session) for line in found)


def _answer(word: str, rest: str, context: PromptContext) -> "Answer":
    own = _OWN.get(word)
    found = own(rest, context) if own is not None else None
    if found is not None:
        return found
    words = find_plain(word, rest, context.session)
    if not words:
        if word == DETACH:
            # Alone it is the attached terminal's own.
            check_words("detach", rest)
        raise WrongUseError(f"there is no command {word[:40]!r} here", hint="See: /help")
    return _run_plain(words, context)


def _run_plain(words: "Sequence[str]", context: PromptContext) -> PlainCommand:
    return PlainCommand(words, folder=find_root_above(context.folder), session=context.session)


def _render_help(name: str, context: PromptContext) -> tuple[str, ...]:
    return render_form_help(name, KEY_COMMANDS[name].key or Form(), columns=context.size[1])


def _use(rest: str, context: PromptContext) -> "Answer":
    agent, _, focus = rest.partition(" ")
    if not agent or agent.startswith("-"):
        raise WrongUseError("/use needs an agent", hint="/use AGENT [FOCUS]")
    focus = focus.strip()
    if not focus.startswith("-") or focus.startswith("- "):
        return _request(context, "use", agent=agent, focus=focus)
    words = split_words(focus)
    own = words[: words.index("--")] if "--" in words else words
    for word in own:
        if word.partition("=")[0] in _ELSEWHERE:
            raise WrongUseError(f"/use does not take {word[:40]!r}", hint="See: /use --help")
    request = parse_open_words(words)
    if request.get("help"):
        return _render_help("use", context)
    view = _read(context.session, context.folder)
    if view["agent"] == agent and not request.get("no_launch"):
        raise WrongUseError(f"{agent} is at work here already", hint="Name another agent")
    rows, cols = context.size
    fields = {
        "cwd": find_root_above(context.folder),
        "env": dict(os.environ),
        "rows": rows,
        "cols": cols,
        **request,
    }
    with context.connect() as connection:
        answer = connection.request(
            "open", limit_s=OPEN_LIMIT_S, agent=agent, session=context.session, **fields
        )
    return (str(answer.get("message") or ""),) if request.get("no_launch") else ()


def _relay(rest: str, context: PromptContext) -> "Answer":
    return _request(context, "use", agent="", focus=take_text("relay", rest))


def _hand_off(rest: str, context: PromptContext) -> "Answer | None":
    if rest.partition(" ")[0] in COMMANDS["handoff"].words:
        return None
    focus = take_text("handoff", rest, words=COMMANDS["handoff"].words)
    return Narration(context.connect, session=context.session, focus=focus)


def _show_status(rest: str, context: PromptContext) -> "Answer | None":
    return None if rest else describe(context.session, context.folder)


def _stop(rest: str, context: PromptContext) -> "Answer":
    check_words("stop", rest)
    return _request(context, "session.stop")


def _list_log(rest: str, context: PromptContext) -> "Answer":
    """Return what happened, oldest first; if the daemon is older than this command, by way of `watch`."""
    check_words("log", rest)
    try:
        with context.connect() as connection:
            answer = connection.request("session.history", limit_s=ASK_LIMIT_S, session=context.session)
    except WrongUseError:
        return _run_plain(("watch", context.session, "--no-follow"), context)
    lines = answer.get("lines")
    shown = tuple(str(line) for line in lines) if isinstance(lines, list) else ()
    return shown or ("Nothing has happened in this session yet.",)


def _edit_packet(rest: str, context: PromptContext) -> "Answer | None":
    """Edit the session's newest packet and return the outcome; `None` if the plain command answers `rest`.

    The editor has the terminal meanwhile.
    """
    words = split_words(rest)
    if words[:1] != ["edit"] or {"--help", "-h"} & {*words}:
        return None
    if set(words[1:]) - {"--document"}:
        raise WrongUseError(
            f"/packet edit does not take {words[-1][:40]!r}",
            hint="/packet edit opens the newest packet, with --document its JSON",
        )
    try:
        from agent_relay.client.attach.tty import LentTerminal
        from agent_relay.faces.cli.session.packet import edit_found, find_packet, render_edit
    except ImportError as error:
        raise RelayError(
            f"cannot edit packets: the agent-relay installation is incomplete ({error})",
            hint="Reinstall agent-relay",
        ) from error
    found = find_packet(context.session, 0)
    done = edit_found(found, document="--document" in words, lent=LentTerminal([*context.modes]))
    return tuple(render_edit(found, done))


def _request(context: PromptContext, op: str, **fields: str) -> tuple[str, ...]:
    with context.connect() as connection:
        connection.request(op, limit_s=ASK_LIMIT_S, session=context.session, **fields)
    return ()


_OWN: "Mapping[str, Callable[[str, PromptContext], Answer | None]]" = {
    "/handoff": _hand_off,
    "/log": _list_log,
    "/packet": _edit_packet,
    "/relay": _relay,
    "/status": _show_status,
    "/stop": _stop,
    "/use": _use,
}
"""Commands that are done here; one that returns `None` is left to the plain command of its name."""


def describe(session: str, folder: str) -> tuple[str, ...]:
    """Return the session in short, its state first."""
    view = _read(session, folder)
    made = render_count(int(str(view["handoffs"])), "handoff")
    lines = [f"session {session}: {view['state']} under {view['agent']}, {made}"]
    if view["task"] or view["title"]:
        lines.append(f"task: {view['task']}" if view["task"] else f"first prompt: {view['title']}")
    limit = view["limit"]
    if isinstance(limit, dict):
        quote = quote_reason(str(limit["text"]))
        lines.append(
            f"last limit: {limit['agent']} hit {name_limit(str(limit['scope']), text=quote)} ({quote})"
        )
    refused = view["refused"]
    if isinstance(refused, dict):
        lines.append(
            f"{refused['agent']} is signed out, or its key refused: {quote_reason(str(refused['text']))}"
        )
    if view["offered"]:
        lines.append(f"{view['offered']} is available again: /use {view['offered']}")
    if view["packet"]:
        lines.append(f"newest packet: {folder}/{view['packet']}")
    return tuple(lines)


def _read(session: str, folder: str) -> "dict[str, object]":
    return read_summary(find_root_above(folder), session)
