"""Notices that a session changed, for every subscriber; one that is not read yet is not sent again."""

import asyncio

ANY_SESSION = "*"
_PENDING_LIMIT = 1024


class Subscription:
    """One subscriber's pending notices: a set of names, which stays small if the subscriber does not read."""

    __slots__ = ("_pending", "_something")

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._something = asyncio.Event()

    def add(self, session: str) -> None:
        """Note that `session` changed; above 1024 pending names there is only `*`, meaning any."""
        if len(self._pending) >= _PENDING_LIMIT:
            self._pending = {ANY_SESSION: None}
        if ANY_SESSION not in self._pending:
            self._pending[session] = None
        self._something.set()

    async def wait(self) -> list[str]:
        """Wait for a change; return the sessions changed since the last call, in order of first change."""
        await self._something.wait()
        self._something.clear()
        sessions = list(self._pending)
        self._pending.clear()
        return sessions


class Notices:
    """Passes changes of sessions to subscribers; use it from the event loop only."""

    __slots__ = ("_subscriptions",)

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def tell(self, session: str) -> None:
        """Notify every subscriber, when it can read that, that `session` changed; return at once."""
        for subscription in self._subscriptions:
            subscription.add(session)

    def subscribe(self) -> Subscription:
        """Return a subscription that gets notices from now on, until it is dropped."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        return subscription

    def drop(self, subscription: Subscription) -> None:
        """End the subscription; harmless when repeated."""
        self._subscriptions.discard(subscription)
