"""Notifications for a person who looks elsewhere: what is worth one, and where it is shown.

Worth one are a handoff nobody asked for, a rest, a reset, and an agent's question. They are shown on attached
terminals, on the desktop, and sent to webhooks, as the user's `notify` says.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from agent_relay.domain.documents.config import NOTIFY_AUTO, NOTIFY_OFF, find_webhook_addresses
from agent_relay.domain.events.session import Event, LegAsking, ReturnOffered, SessionRested, SessionWoke
from agent_relay.domain.events.work import HandoffBegun, HandoffConfirmed
from agent_relay.domain.moments import parse_moment, render_moment
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.names import agent_command
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import Services
from agent_relay.engine.threads import spawn
from agent_relay.terminal.holder_client import HolderError
from agent_relay.terminal.notification import clean

OFTEN_S = 5.0
"""Two of the same kind within so many seconds count as one: a person at the machine saw the first."""
_BY_HAND = "manual"
_ASKED_FOR = "asked for"
"""The reason of a handoff that a person began on the resting screen."""


@dataclass(frozen=True, slots=True)
class Notification:
    """`kind` is `handoff`, `resting`, `reset` or `asking`; both texts are one line without secrets."""

    kind: str
    title: str
    text: str


def find_notification(
    session: Session, events: Sequence[Event], number: int, zone: tzinfo
) -> Notification | None:
    """Return the notification of the journal's line `number`; `None` for a line that needs none.

    `session` is as of the newest of `events`. A handoff that a person asked for needs none.
    """
    event = events[number - 1]
    match event.body:
        case HandoffConfirmed(handoff):
            begun = _find_begun(events, handoff)
            if begun is None or begun.reason == _BY_HAND or begun.why == _ASKED_FOR:
                return None
            said = (
                "handoff",
                f"{begun.to_agent} took over",
                f"{begun.why or begun.from_agent + ' handed over'}.",
            )
        case SessionRested(why, until) if session.state is State.RESTING and not session.is_held:
            reset = parse_moment(until)
            when = f" The first reset is at {render_moment(reset, event.at, zone)}." if reset else ""
            said = (
                "resting",
                "every agent rests",
                f"{why}.{when}" if why else when.strip() or "No reset time is known.",
            )
        case SessionWoke():
            said = "reset", f"{session.agent} is available again", "Its limit has reset."
        case ReturnOffered(agent, by_itself):
            follows = (
                "It takes over at the end of this turn."
                if by_itself
                else f"To switch back: {agent_command(agent)}"
            )
            said = "reset", f"{agent} is available again", follows
        case LegAsking(leg):
            asking = next((one.agent for one in session.legs if one.id == leg), session.agent)
            said = "asking", f"{asking} asks", "It waits for your answer."
        case _:
            return None
    kind, title, text = said
    place = session.root.rpartition("/")[2]
    return Notification(kind, _tell(f"{place}: {title}" if place else title), _tell(text))


def is_due(last_at_s: float | None, now_s: float) -> bool:
    """Return whether a notification is due; the last of its kind was at `last_at_s`, `None` for never."""
    return last_at_s is None or now_s - last_at_s >= OFTEN_S


def _find_begun(events: Sequence[Event], handoff: str) -> HandoffBegun | None:
    for event in reversed(events):
        if isinstance(event.body, HandoffBegun) and event.body.handoff == handoff:
            return event.body
    return None


def _tell(text: str) -> str:
    # The daemon loads this at its start, and has nobody to notify then.
    from agent_relay.redact.text import redact_text

    return clean(redact_text(text).text)


class SessionNotifier:
    """Sends the notifications of one session for new lines of its journal, as the user's `notify` says.

    Lines up to `number` are history. The environment is that of the user's last terminal.
    """

    def __init__(self, services: Services, number: int, live: Mapping[str, LegMonitor]) -> None:
        self._services = services
        self._number = number
        self._live = live
        self._last: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def see(self, session: Session, events: Sequence[Event], environ: Mapping[str, str]) -> None:
        """Send the notifications of new journal lines; return at once, however long sending takes."""
        known, self._number = self._number, len(events)
        if self._services.config.notify == (NOTIFY_OFF,):
            return
        now_s = asyncio.get_running_loop().time()
        for number in range(known + 1, len(events) + 1):
            found = find_notification(session, events, number, self._services.zone)
            if found is None or not is_due(self._last.get(found.kind), now_s):
                continue
            self._last[found.kind] = now_s
            work = self._tell(session, events[number - 1], found, environ)
            task = spawn(work, self._services.report, name="notify")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel all pending notifications."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tell(
        self, session: Session, event: Event, found: Notification, environ: Mapping[str, str]
    ) -> None:
        """Send the notification in every way the user wants."""
        services = self._services
        settings = services.config.notify
        for address in find_webhook_addresses(settings):
            services.messengers.post(address, _render(session, event, found))
        count = await self._tell_terminals(session, found, settings)
        if "desktop" in settings or (NOTIFY_AUTO in settings and not count):
            await services.messengers.show(environ, found.title, found.text)

    async def _tell_terminals(self, session: Session, found: Notification, settings: tuple[str, ...]) -> int:
        """Notify the attached terminals; return how many there were."""
        bell, osc = (
            NOTIFY_AUTO in settings or "bell" in settings,
            NOTIFY_AUTO in settings or "osc" in settings,
        )
        leg = session.living_leg
        live = self._live.get(leg.id) if leg is not None else None
        if live is None or not (bell or osc):
            return 0
        answer: Mapping[str, object] = {}
        # A holder that is gone has no terminals, and one from before this was known tells none.
        with contextlib.suppress(HolderError):
            answer = await live.holder.request(
                "notify", title=found.title, text=found.text, bell=bell, osc=osc
            )
        count = answer.get("told")
        return count if isinstance(count, int) else 0


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
