"""Calls for a person who looks elsewhere: on attached terminals, on the desktop, and by webhooks."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from agent_relay.app.ground import Ground
from agent_relay.app.stage import Stage
from agent_relay.domain.event import Event
from agent_relay.domain.notify_config import AUTO, OFF, find_addresses
from agent_relay.domain.session import Session
from agent_relay.logic.notification import Notification, find_notification, is_due
from agent_relay.system.holder_client import HolderError


class Notifying:
    """One session's: what its journal says from now on is told as the user's `notify` has it.

    What stands there up to line `number` is history. The environment is that of the user's last terminal.
    """

    def __init__(self, ground: Ground, number: int, stage: Stage) -> None:
        self._ground = ground
        self._number = number
        self._stage = stage
        self._last: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def see(self, session: Session, events: Sequence[Event]) -> None:
        """The journal has grown; returns at once, whatever telling takes."""
        known, self._number = self._number, len(events)
        if self._ground.config.notify == (OFF,):
            return
        now_s = asyncio.get_running_loop().time()
        for number in range(known + 1, len(events) + 1):
            found = find_notification(session, events, number, self._ground.zone)
            if found is None or not is_due(self._last.get(found.kind), now_s):
                continue
            self._last[found.kind] = now_s
            task = asyncio.create_task(self._tell(session, events[number - 1], found), name="notify")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel all pending notifications."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tell(self, session: Session, event: Event, found: Notification) -> None:
        """Tell it in every way that is wished for; one that fails is a line in the log."""
        ground = self._ground
        wishes = ground.config.notify
        try:
            for address in find_addresses(wishes):
                ground.messengers.post(address, _render(session, event, found))
            told = await self._tell_terminals(session, found, wishes)
            if "desktop" in wishes or (AUTO in wishes and not told):
                await ground.messengers.show(self._stage.environ, found.title, found.text)
        except Exception as error:  # noqa: BLE001 - the root of a task nobody waits for: a session goes on without it
            ground.report(error)

    async def _tell_terminals(self, session: Session, found: Notification, wishes: tuple[str, ...]) -> int:
        """How many attached terminals were told."""
        bell, osc = AUTO in wishes or "bell" in wishes, AUTO in wishes or "osc" in wishes
        leg = session.living_leg
        live = self._stage.find_live(leg.id) if leg is not None else None
        if live is None or not (bell or osc):
            return 0
        answer: Mapping[str, object] = {}
        # A holder that is gone has no terminals, and one from before this was known tells none.
        with contextlib.suppress(HolderError):
            answer = await live.watch.holder.request(
                "notify", title=found.title, text=found.text, bell=bell, osc=osc
            )
        told = answer.get("told")
        return told if isinstance(told, int) else 0


def _render(session: Session, event: Event, found: Notification) -> dict[str, object]:
    return {
        "schema": "agent-relay/notification",
        "version": 1,
        "id": f"{session.id}:{event.number}",
        "session": session.id,
        "kind": found.kind,
        "at": event.at.isoformat(),
        "title": found.title,
        "text": found.text,
    }
