"""Parse the options of the commands that start without typer, and report wrong use in one form.

Imports nothing but errors: hot commands load it at the cost of a bare Python.
"""

from agent_relay.domain.errors import WrongUseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class UsageError(WrongUseError):
    """Wrong use of `command`; printed as `agent-relay COMMAND: SENTENCE`, with its help as the hint."""

    def __init__(self, sentence: str, *, command: str = "", hint: str = "") -> None:
        super().__init__(sentence, hint=hint or f"See: agent-relay {command} --help")
        self.command = command


def suggest(name: str, words: "Sequence[str]") -> str:
    """Return `Did you mean …? ` with the word of `words` that is most like `name`; empty if none is."""
    from difflib import get_close_matches

    close = get_close_matches(name, words, n=1)
    return f"Did you mean {close[0]}? " if close else ""


class ParsedOptions:
    """The words of a command line: flags that are set, values and lists by option, arguments.

    `rest` is what follows `--` for the agent itself; `None` without one. With `wants_help` the arguments may
    be too many or too few.
    """

    __slots__ = ("arguments", "flags", "lists", "rest", "values", "wants_help")

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.flags: set[str] = set()
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.rest: list[str] | None = None
        self.wants_help = False


class OptionParser:
    """Parses the words of one command: `flags` have no value, `lists` may be repeated.

    Words after `--` are arguments, or with `takes_rest` for the agent itself. `most` is how many arguments
    there may be. The argument at index `free` may begin with a dash.
    """

    def __init__(
        self,
        command: str,
        *,
        flags: "Sequence[str]" = (),
        values: "Sequence[str]" = (),
        lists: "Sequence[str]" = (),
        takes_rest: bool = False,
        most: int | None = None,
        free: int = -1,
    ) -> None:
        self._command = command
        self._flags = flags
        self._values = values
        self._lists = lists
        self._takes_rest = takes_rest
        self._most = most
        self._free = free

    def parse(self, words: "Sequence[str]") -> ParsedOptions:
        """Return what the words say; raise UsageError for an unknown word or a missing value.

        What follows an option that has a value is that value, whatever it is.
        """
        found = ParsedOptions()
        left = list(words)
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if word in self._flags:
                found.flags.add(word)
            elif name in self._values or name in self._lists:
                if not equals and not left:
                    raise UsageError(f"{name} needs a value", command=self._command)
                self._keep(found, name, value if equals else left.pop(0))
            elif word == "--":
                found.rest = left
                break
            elif word in {"--help", "-h"}:
                found.wants_help = True
            elif word.startswith("-") and word != "-" and len(found.arguments) != self._free:
                raise self._refuse(word)
            else:
                found.arguments.append(word)
        if found.rest is not None and not self._takes_rest:
            found.arguments += found.rest
            found.rest = None
        if self._most is not None and len(found.arguments) > self._most and not found.wants_help:
            raise UsageError(
                f"unexpected argument {found.arguments[self._most][:40]!r}", command=self._command
            )
        return found

    def _keep(self, found: ParsedOptions, name: str, value: str) -> None:
        if name in self._values:
            found.values[name] = value
        else:
            found.lists.setdefault(name, []).append(value)

    def _refuse(self, word: str) -> UsageError:
        name = word.partition("=")[0]
        if name in self._flags:
            return UsageError(f"option {name!r} does not take a value", command=self._command)
        meant = suggest(name, (*self._flags, *self._values, *self._lists))
        see = (
            "Options of the agent itself go after --, at the end"
            if self._takes_rest
            else f"See: agent-relay {self._command} --help"
        )
        return UsageError(f"unknown option {word[:40]!r}", hint=f"{meant}{see}", command=self._command)


_OPEN_TEXTS = ("--task", "--session", "--from", "--focus", "--model", "--priority", "--rollback")
_OPEN_LISTS = ("--expect", "--accept", "--check", "--constraint", "--needs", "--question")
_OPEN_FLAGS = ("--new", "--digest", "--no-launch", "--yes", "--json")

OPEN_LIMIT_S = 120.0
"""Longest wait for the daemon to find, hand over or start a session, in seconds."""


def parse_open_words(words: list[str], *, command: str = "AGENT") -> dict[str, object]:
    """Return the fields of the request: texts by option, flags as true, `args` after `--`.

    A word that is no option is the task. Raises UsageError, naming `command`, for an unknown option, a
    missing value, or options that cannot be used together.
    """
    parser = OptionParser(command, flags=_OPEN_FLAGS, values=_OPEN_TEXTS, lists=_OPEN_LISTS, takes_rest=True)
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
    if request.get("task") == "-":
        raise UsageError(
            "the task cannot be read from standard input: the agent needs the terminal",
            hint="Without a screen: agent-relay run AGENT -",
            command=command,
        )
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
