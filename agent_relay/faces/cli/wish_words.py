"""The words behind an agent's name, as the wish they are for the daemon."""

from agent_relay.domain.errors import WrongUseError

_TEXTS = ("--task", "--session", "--from", "--focus", "--model", "--priority", "--rollback")
_LISTS = ("--expect", "--accept", "--constraint", "--needs", "--question")
_FLAGS = ("--new", "--no-launch", "--yes", "--json")

OPEN_LIMIT_S = 120.0
"""How long the daemon may take to find, hand over or start a session before we stop waiting."""


def parse_words(words: list[str]) -> dict[str, object]:
    """The wish in the daemon's words: texts by option, flags as true, `args` after `--`.

    Raises WrongUseError for an unknown word, a missing value, or wishes that exclude each other.
    """
    wish: dict[str, object] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            wish["args"] = rest
            break
        if word in {"--help", "-h"}:
            return {"help": True}
        if word in _FLAGS:
            wish[word[2:].replace("-", "_")] = True
        elif name in {*_TEXTS, *_LISTS}:
            if not equals and not rest:
                raise WrongUseError(f"{name} needs a value", hint="See: agent-relay AGENT --help")
            text = value if equals else rest.pop(0)
            before = wish.get(name[2:], [])
            several = [*before, text] if isinstance(before, list) else [text]
            wish[name[2:]] = several if name in _LISTS else text
        else:
            raise WrongUseError(
                f"an agent's session does not know {word!r}", hint="Arguments for the agent stand after --"
            )
    if wish.get("new") and wish.get("session"):
        raise WrongUseError("--new and --session exclude each other")
    return wish
