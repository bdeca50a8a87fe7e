"""Parse the options behind an agent's name into the fields of the daemon's `open` request."""

from agent_relay.faces.cli.options import OptionParser, UsageError

_TEXTS = ("--task", "--session", "--from", "--focus", "--model", "--priority", "--rollback")
_LISTS = ("--expect", "--accept", "--constraint", "--needs", "--question")
_FLAGS = ("--new", "--no-launch", "--yes", "--json")

OPEN_LIMIT_S = 120.0
"""How long the daemon may take to find, hand over or start a session before we stop waiting."""


def parse_words(words: list[str], *, command: str = "AGENT") -> dict[str, object]:
    """Return the fields of the request: texts by option, flags as true, `args` after `--`.

    A word that is no option is the task. Raises UsageError, naming `command`, for an unknown option, a
    missing value, or options that cannot be used together.
    """
    parser = OptionParser(command, flags=_FLAGS, values=_TEXTS, lists=_LISTS, takes_rest=True)
    found = parser.parse(words)
    if found.wants_help:
        return {"help": True}
    request: dict[str, object] = {
        **{flag[2:].replace("-", "_"): True for flag in found.flags},
        **{name[2:]: value for name, value in found.values.items()},
        **{name[2:]: texts for name, texts in found.lists.items()},
    }
    if found.rest is not None:
        request["args"] = found.rest
    if found.arguments:
        request["task"] = _choose_task(found.arguments, command, is_named="task" in request)
    if request.get("new") and request.get("session"):
        raise UsageError(
            "--new and --session cannot be used together", hint="Leave one of them out", command=command
        )
    return request


def _choose_task(arguments: list[str], command: str, *, is_named: bool) -> str:
    """Return the task given without `--task`; raise UsageError if it is empty or one of two."""
    task, *more = arguments
    if is_named:
        raise UsageError(
            f"the task is given twice: {task[:40]!r} and --task",
            hint="Leave one of them out",
            command=command,
        )
    if more:
        raise UsageError(
            f"the task must be one argument, and {more[0][:40]!r} is a second one",
            hint='Quote it: "fix the bug"',
            command=command,
        )
    if not task.strip():
        raise UsageError("the task is empty", hint="Leave it out, or say what to do", command=command)
    return task
