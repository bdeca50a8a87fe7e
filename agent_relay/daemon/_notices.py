"""Notices that a session changed, sent to every subscriber, at most once until it heard them."""

import asyncio

ANY_SESSION = "*"
_PENDING_LIMIT = 1024


class Subscription:
    """One listener's pending notices: a set of names, so a listener that sleeps costs no growing memory."""

    __slots__ = ("_pending", "_something")

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._something = asyncio.Event()

    def add(self, session: str) -> None:
        """The listener will hear of `session`; above 1024 pending names it hears `*`, meaning any."""
        if len(self._pending) >= _PENDING_LIMIT:
            self._pending = {ANY_SESSION: None}
        if ANY_SESSION not in self._pending:
            self._pending[session] = None
        self._something.set()

    async def wait(self) -> list[str]:
        """The sessions that changed since the last call, in the order they changed first; waits for one."""
        await self._something.wait()
        self._something.clear()
        sessions = list(self._pending)
        self._pending.clear()
        return sessions


class Notices:
    """Where changes are told and heard; used from the event loop only."""

    __slots__ = ("_subscriptions",)

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def tell(self, session: str) -> None:
        """Every subscriber hears, when it can, that `session` changed; returns at once."""
        for subscription in self._subscriptions:
            subscription.add(session)

    def subscribe(self) -> Subscription:
        """A subscription that hears from now on, until it is dropped."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def drop(self, subscription: Subscription) -> None:
        """The subscription hears no more; harmless when repeated."""
        self._subscriptions.discard(subscription)
