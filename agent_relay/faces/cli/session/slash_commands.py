"""Understand the words of a command typed behind a slash, in the relay shell or behind the relay key."""

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.commands import COMMANDS, KEY_COMMANDS, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OF_SESSION = {"handoff": ("history",), "packet": ("show", "path", "diff", "verify", "export")}
_HELP = frozenset({"--help", "-h"})
_SIMILAR = 0.75
"""Least similarity of a mistyped word, that of `shwo` and `show`."""
_COMMAND_WORDS = 2
"""Most words of a misspelt sub-command with its argument; a text of more is a sentence."""


def find_plain(word: str, rest: str, session: str) -> tuple[str, ...]:
    """Return the plain command that answers `word`, about this session unless it names another.

    It is empty if no command does. Raises WrongUseError for an unterminated quote.
    """
    name = word.removeprefix("/")
    if name == word or name not in KEY_COMMANDS or name not in COMMANDS:
        return ()
    words = split_words(rest)
    return (name, *add_session(name, words, session))


def add_session(name: str, words: list[str], session: str) -> list[str]:
    """Return the words of the command `name` with this session, unless they name another or need none."""
    if name == "packet" and not words:
        return ["show", session]
    if name == "recall" and "--session" not in words:
        return ["--session", session, *words]
    if name == "handoff" and words[:1] == ["plan"] and "--session" not in words:
        return [*words, "--session", session]
    at = 1 if words and words[0] in _OF_SESSION.get(name, ()) else 0
    takes_one = at or name == "undo-handoff" or (name == "metrics" and "--all" not in words)
    if takes_one and (len(words) == at or words[at].startswith("-")):
        return [*words[:at], session, *words[at:]]
    return words


def split_words(text: str) -> list[str]:
    """Split the text into words as a shell does; raise WrongUseError for an unterminated quote."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        raise WrongUseError(f"unterminated quote in {text[:40]!r}", hint="Close it") from None


def asks_for_help(command: Command, rest: str) -> bool:
    """Check whether the words ask for the help of `command` itself.

    In a free text, and behind a sub-command, `--help` is a word like any other.
    """
    words = rest.split()
    if command.text_at is not None:
        words = words[: command.text_at + 1]
    elif command.words:
        words = words[:1]
    return bool(_HELP & {*words})


def check_words(name: str, rest: str, *, most: int = 0) -> None:
    """Raise WrongUseError for an option, and for more than `most` words, behind the command `name`."""
    words = rest.split()
    if words and not most:
        raise WrongUseError(f"/{name} takes no arguments", hint=f"See: /{name} --help")
    for word in (*filter(_is_option, words), *words[most:]):
        raise WrongUseError(f"/{name} does not take {word[:40]!r}", hint=f"See: /{name} --help")


def _is_option(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-")[:1].isalpha()


def take_text(name: str, text: str, *, words: "Sequence[str]" = ()) -> str:
    """Return the free text of the command `name`; behind `--` it may be any.

    Raises WrongUseError if it begins like an option, or like one of the sub-commands `words` misspelt.
    """
    first, *more = text.split() or [""]
    if first == "--":
        return text[len(first) :].strip()
    anyway = f"A text that begins so: {'/use AGENT' if name == 'use' else f'/{name}'} -- TEXT"
    if _is_option(first):
        raise WrongUseError(f"/{name} does not take {first[:40]!r}", hint=anyway)
    if words and first and (len(more) < _COMMAND_WORDS or more[0].startswith("--")):
        from difflib import get_close_matches

        for meant in get_close_matches(first, words, n=1, cutoff=_SIMILAR):
            raise WrongUseError(
                f"/{name} has no command {first[:40]!r}", hint=f"Did you mean /{name} {meant}? {anyway}"
            )
    return text
