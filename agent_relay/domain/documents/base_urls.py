"""The model of an adapter's `[proxy]`: the base URLs of an agent's providers, and how to replace them."""

from typing import Annotated

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
