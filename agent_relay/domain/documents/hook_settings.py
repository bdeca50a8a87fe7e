"""The models of what a user may install in an agent's own configuration: `[hooks]`, `[tool_extension]`."""

from typing import Literal

from msgspec import field

from agent_relay.domain.documents.handwritten import Strict


class HookPlace(Strict, frozen=True):
    """One of the agent's own configuration files, a JSON object; its path is a form like a source's."""

    scope: Literal["user", "project"]
    path: str


class Hooks(Strict, frozen=True):
    """Hooks that a user may have installed for an agent that relay did not start.

    In each of `files`, the key `hooks` holds a list for each event, of objects whose own key `hooks` lists
    commands; ours have the keys `more`, too. They are called at `events`, with an object in which `names`
    are found: dotted fields of the session's id, its transcript and its working folder. The transcript named
    is followed from then on. `notice` is what the user should know of them. Where there can be none,
    `unsupported` says why, and there is nothing else.
    """

    files: tuple[HookPlace, ...] = ()
    events: tuple[str, ...] = ()
    more: dict[str, int | str] = field(default_factory=dict)
    names: dict[Literal["native_id", "transcript", "cwd"], str] = field(default_factory=dict)
    notice: str = ""
    unsupported: str = ""


class ToolExtension(Strict, frozen=True):
    """An extension that gives the agent relay's tools where its launch cannot: a folder with one file.

    `path` is a form like a source's. `text` is the file, JSON with relay's server `agent_relay` in its
    `mcpServers`; `{mcp_program}` and `{mcp_args}` are as in a launch, `{mark}` says that it is relay's.
    """

    path: str
    text: str
