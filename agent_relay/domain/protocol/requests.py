"""Requests, handlers and notices: what the daemon and the application promise each other."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that asks, as the kernel names it; `client` is its version of agent-relay."""

    pid: int
    uid: int
    client: str = ""


Handler = Callable[[Mapping[str, object], Peer], Awaitable[Mapping[str, object]]]
"""Answers one request by the fields it was sent, still unchecked: with the answer's, or by raising a
RelayError that the client shall see.

It runs to its end even where the client goes away; it is cancelled only when the daemon stops.
"""


class NoticeSender(Protocol):
    """Through which the application reports that something changed."""

    def tell(self, session: str) -> None:
        """Notify subscribers that this session changed. Returns at once; call it in the event loop."""
        ...


class App(Protocol):
    """What the daemon serves."""

    async def start(self) -> None:
        """Take over what an earlier daemon left; the daemon answers requests only after this."""
        ...

    async def stop(self) -> None:
        """Release everything, holders left running. Called once, with a limit on its time."""
        ...

    def handlers(self) -> Mapping[str, Handler]:
        """Return the operations offered, by name."""
        ...
