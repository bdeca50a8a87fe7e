"""Parse the options behind an agent's name into the fields of the daemon's `open` request."""

from agent_relay.domain.errors import WrongUseError

_TEXTS = ("--task", "--session", "--from", "--focus", "--model", "--priority", "--rollback")
_LISTS = ("--expect", "--accept", "--constraint", "--needs", "--question")
_FLAGS = ("--new", "--no-launch", "--yes", "--json")

OPEN_LIMIT_S = 120.0
"""How long the daemon may take to find, hand over or start a session before we stop waiting."""


def parse_words(words: list[str]) -> dict[str, object]:
    """Return the fields of the request: texts by option, flags as true, `args` after `--`.

    A word that is no option is the task. Raises WrongUseError for an unknown option, a missing value, or
    options that exclude each other.
    """
    wish: dict[str, object] = {}
    tasks: list[str] = []
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
        elif word.startswith("-"):
            raise WrongUseError(
                f"unknown option {word[:40]!r}", hint="Options of the agent itself go after --, at the end"
            )
        else:
            tasks.append(word)
    _add_task(wish, tasks)
    if wish.get("new") and wish.get("session"):
        raise WrongUseError("--new and --session exclude each other", hint="Leave one of them out")
    return wish


def _add_task(wish: dict[str, object], tasks: list[str]) -> None:
    """Add the task given without `--task` to `wish`; raise WrongUseError if it is empty or one of two."""
    if not tasks:
        return
    if "task" in wish:
        raise WrongUseError(
            f"the task is given twice: {tasks[0][:40]!r} and --task", hint="Leave one of them out"
        )
    if len(tasks) > 1:
        raise WrongUseError(
            f"the task must be one argument, and {tasks[1][:40]!r} is a second one",
            hint='Quote it: "fix the bug"',
        )
    if not tasks[0].strip():
        raise WrongUseError("the task is empty", hint="Leave it out, or say what to do")
    wish["task"] = tasks[0]
