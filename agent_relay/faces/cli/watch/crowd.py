"""Who connects to the page without having shown its token: so many at most, and none for long."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 256
"""Above so many the oldest give way: who asks for something at once, as a browser does, is none of them."""
LIMIT_S = 10.0
"""How long one of them may stay, whatever it does meanwhile."""

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Stranger:
    end: Callable[[], None]
    timer: asyncio.TimerHandle


class Crowd:
    """The connections of which nobody knows whose they are, oldest first."""

    def __init__(self, *, most: int = MOST, limit_s: float = LIMIT_S) -> None:
        self._most = most
        self._limit_s = limit_s
        self._strangers: dict[Address, _Stranger] = {}

    def enter(self, address: Address, end: Callable[[], None]) -> None:
        """Somebody connected; `end` hangs up on them."""
        timer = asyncio.get_running_loop().call_later(self._limit_s, end)
        self._strangers[address] = _Stranger(end, timer)
        while len(self._strangers) > self._most:
            oldest = next(iter(self._strangers))
            end_oldest = self._strangers[oldest].end
            self.leave(oldest)
            end_oldest()

    def leave(self, address: Address) -> None:
        """They are gone, or have shown the token and may stay."""
        stranger = self._strangers.pop(address, None)
        if stranger is not None:
            stranger.timer.cancel()


def build_protocol(crowd: Crowd) -> type[asyncio.Protocol]:
    """The server's own protocol, whose connections are of the crowd until they leave it."""

    class Counted(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its base
            super().connection_made(transport)
            if self.client is None:
                transport.abort()  # they are gone again
            else:
                crowd.enter(self.client, transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.client is not None:
                crowd.leave(self.client)
            super().connection_lost(exc)

    return Counted
