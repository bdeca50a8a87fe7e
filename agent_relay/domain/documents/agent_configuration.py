"""The models of what is changed in an agent's own configuration: `[proxy]`, `[hooks]`, `[tool_extension]`."""

from typing import Annotated, Literal

from msgspec import Meta, field

from agent_relay.domain.documents.handwritten import Strict


class BaseUrl(Strict, frozen=True):
    """One base URL of the agent's providers, and how the agent is given another in its place.

    It is what the user set: the value of `variable`, or what stands at `path` in the last of `files` that has
    it (forms like a source's path; TOML, or JSON with comments). `path` steps by `/`; a `*` stands for any
    name, and each is a base URL of its own. Where the user set none it is `upstream`; without that there is
    none, nor if nothing stands at `needs` in any of `files`. `headers` are other upstreams, by the header of
    the requests that go there, unless the user set one.

    The agent is given the other one as the value of `variable`, in `args`, or in the JSON object that
    `variable` holds, into which `merge` is merged: `{url}` stands for it, `{name}` for what the star was.
    `env` is set, too, where the upstream is not the user's.
    """

    variable: str = ""
    args: tuple[str, ...] = ()
    merge: str = ""
    files: tuple[str, ...] = ()
    path: str = ""
    needs: str = ""
    upstream: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


class ProxySpec(Strict, frozen=True, kw_only=True):
    """The settings to send the agent's requests through relay's proxy.

    Response headers named in `keeps` (in lower case, `*` at the end for any further letters) are evidence for
    the detector. `certificates` are the variables that name files of further certificates the agent trusts.
    A request that begins with any of `sides` (within its first 2 KiB) does not belong to the conversation.
    """

    keeps: tuple[str, ...]
    sides: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    urls: Annotated[tuple[BaseUrl, ...], Meta(min_length=1, max_length=9)]


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
