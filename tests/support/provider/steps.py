"""The words a scripted provider understands: what a model says or does in one request.

A step answers one request of an agent's main conversation. Steps are plain JSON objects so that a
script can be changed while the provider runs; these functions build them.
"""

from typing import Any, NotRequired, TypedDict

FOREVER = -1


class Tool(TypedDict):
    """One tool call: `custom` marks free-form input (a string) where the wire has such a thing."""

    name: str
    input: dict[str, Any] | str
    custom: NotRequired[bool]


class Step(TypedDict, total=False):
    """One answer. `hang_s` waits before anything is sent; `times` repeats the step (`FOREVER`).

    `held` is how many tokens the conversation holds with this answer, by the provider's own count.
    """

    say: str
    tools: list[Tool]
    error: str
    given: dict[str, object]
    headers: dict[str, str]
    hang_s: float
    times: int
    held: int


def say(text: str, *, held: int = 0) -> Step:
    """The model answers `text` and the turn ends; 0 for a small conversation."""
    return Step(say=text, held=held) if held else Step(say=text)


def call(*tools: Tool, text: str = "") -> Step:
    """The model calls `tools`, after saying `text` if there is any."""
    return Step(say=text, tools=list(tools))


def refuse(error: str, *, times: int = FOREVER, **given: object) -> Step:
    """The provider answers with the named error of `errors.py`; `given` are that error's arguments."""
    return Step(error=error, given=given, times=times)


def hang(seconds: float, *, times: int = 1) -> Step:
    """The provider accepts the request and says nothing for `seconds`."""
    return Step(hang_s=seconds, say="(at last)", times=times)


def edit(agent: str, *, path: str, old: str, new: str) -> Tool:
    """The agent's own tool call that replaces the line `old` by `new` in `path` (absolute)."""
    match agent:
        case "claude":
            return Tool(name="Edit", input={"file_path": path, "old_string": old, "new_string": new})
        case "codex":
            patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"
            return Tool(name="apply_patch", input=patch, custom=True)
        case "gemini":
            given = {"file_path": path, "instruction": "fix", "old_string": old, "new_string": new}
            return Tool(name="replace", input=given)
        case _:
            return Tool(name="edit", input={"filePath": path, "oldString": old, "newString": new})


def read(agent: str, *, path: str) -> Tool:
    """The agent's own tool call that reads `path` (absolute)."""
    match agent:
        case "claude":
            return Tool(name="Read", input={"file_path": path})
        case "codex":
            return shell("codex", f"cat {path}")
        case "gemini":
            return Tool(name="read_file", input={"file_path": path})
        case _:
            return Tool(name="read", input={"filePath": path})


def shell(agent: str, command: str) -> Tool:
    """The agent's own tool call that runs `command` in a shell."""
    match agent:
        case "claude":
            return Tool(name="Bash", input={"command": command, "description": "Run it"})
        case "codex":
            return Tool(name="exec_command", input={"cmd": command})
        case "gemini":
            return Tool(name="run_shell_command", input={"command": command, "description": "Run it"})
        case _:
            return Tool(name="bash", input={"command": command, "description": "Run it"})
