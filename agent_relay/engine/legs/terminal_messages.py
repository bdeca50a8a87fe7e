"""A session as people see it: messages, a slow start and the bar on its terminals; notifications.

What lasts less than ten seconds is not reported: it is over before anybody could have read it. For a person
who looks elsewhere, a handoff nobody asked for, a rest, a reset, and an agent's question are worth a
notification: on attached terminals, on the desktop, by webhooks, as the user's `notify` says.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import tzinfo

import msgspec

from agent_relay.domain.documents.config import NOTIFY_AUTO, NOTIFY_OFF, find_webhook_addresses
from agent_relay.domain.events.session import Event, LegAsking, ReturnOffered, SessionRested, SessionWoke
from agent_relay.domain.events.work import HandoffBegun, HandoffConfirmed
from agent_relay.domain.moments import render_reset_text
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.names import agent_command
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import Services, SessionHost
from agent_relay.engine.threads import BackgroundTasks, spawn
from agent_relay.session.views.messages import render_message, render_slow_start
from agent_relay.session.views.waiting import (
    NO_DELIVERY_PROGRESS,
    DeliveryProgress,
    DeliveryStage,
    HandoffBar,
    build_bar,
    build_question_bar,
)
from agent_relay.terminal.holder_client import HolderError
from agent_relay.terminal.notification import clean

_log = logging.getLogger(__name__)


Tell = Callable[[str], Awaitable[None]]
Announce = Callable[[DeliveryStage], Awaitable[bool]]
"""Announces the stage of a delivery; returns whether the keys of the leg's terminals are held meanwhile."""
SILENT_S = 10.0
"""Seconds in which nothing is reported: what lasts less is over before anybody could have read it."""


async def wait_with_reports(
    monitor: LegMonitor, is_so: Callable[[], bool], *, limit_s: float, tell: Tell
) -> bool:
    """Return whether `is_so` became true within `limit_s` seconds; after ten, report what prevents it."""
    if await monitor.wait_until(is_so, limit_s=SILENT_S):
        return True
    await tell(describe_wait(monitor))
    return await monitor.wait_until(is_so, limit_s=limit_s - SILENT_S)


async def announce_nothing(_stage: DeliveryStage) -> bool:
    """Announce nothing; return that no keys are held."""
    return False


def describe_wait(monitor: LegMonitor) -> str:
    """Return what the agent does instead of taking its packet."""
    match monitor.state:
        case "asking":
            doing = "is asking something"
        case "starting":
            doing = "is still starting"
        case "busy":
            doing = "is busy with something else"
        case _ if monitor.input == "typed":
            doing = "has something in its input line"
        case _:
            doing = "is slow to read"
    return f"{monitor.leg.agent} {doing}, and has not been given its packet yet"


async def show_slow_start(
    monitor: LegMonitor, session: Session, *, has_bar: Callable[[str], bool], after_s: float = SILENT_S
) -> None:
    """Show a line on the leg's terminals if its agent is not ready `after_s` seconds from now.

    None if the agent asks something meanwhile, if its screen does not show its state, or while a bar says
    that it starts.
    """
    leg = monitor.leg
    if leg.headless or leg.was_ready or leg.was_busy or not monitor.sees_prompt:
        return
    if await monitor.wait_until(
        lambda: monitor.gone.is_set() or monitor.state != "starting", limit_s=after_s
    ):
        return
    if monitor.screen is None or has_bar(leg.id):
        return
    _log.info("slow-start leg=%s", leg.id)
    with contextlib.suppress(HolderError):
        await monitor.holder.request("say", text=render_slow_start(session, leg.agent))


_MESSAGE_LENGTH = 2000


async def show_message(live: LegMonitor | None, session: Session, zone: tzinfo) -> None:
    """Send the session's message to every terminal of the leg.

    A holder that is gone, or of an earlier version, has no terminal that could show it: `status` shows it
    then.
    """
    message = render_message(session, zone)
    if live is None or not message:
        return
    with contextlib.suppress(HolderError):
        kind = "rest" if session.state is State.RESTING and not session.is_held else ""
        await live.holder.request("say", text=message[:_MESSAGE_LENGTH], kind=kind, line=live.shown_input)


_AGAIN_S = 0.5
"""Pause before a holder that did not take the bar gets it again: an old bar would hold a person's keys."""
_SHOWN_S = 1.0
"""Longest wait, in seconds, for a holder that does not answer, by a caller that needs the bar shown."""
_PASSING = frozenset({"gone", "slow", ""})
"""Reasons for which a holder that supports bars may not have taken one."""


class BarSender:
    """The bar of one session. Its followers are notified of changes that no line of the journal shows."""

    def __init__(self, services: Services, host: SessionHost, live: Mapping[str, LegMonitor]) -> None:
        self._services = services
        self._live = live
        self._host = host
        self._delivery = NO_DELIVERY_PROGRESS
        self._shown: dict[str, HandoffBar] = {}
        self._unable: set[str] = set()
        # Legs whose holders, of an earlier version, go on typing what they hold into a question.
        self._types_on: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    @property
    def bar(self) -> HandoffBar:
        """The bar as it should be now."""
        return build_bar(self._host.session, self._delivery, self._services.zone)

    def update(self) -> None:
        """Schedule sending the current bar to the leg's terminals."""
        if (self._sending is None or self._sending.done()) and self._find_due() is not None:
            self._sending = spawn(self._send(), self._services.report, name="bar")

    def can_show(self, leg_id: str) -> bool:
        """Tell whether the leg's holder shows bars, as far as that is known."""
        return leg_id in self._shown and leg_id not in self._unable

    def has_bar(self, leg_id: str) -> bool:
        """Tell whether the leg's terminals show a bar now, as far as that is known."""
        return bool(self.bar.texts) and self.can_show(leg_id)

    async def show(self, delivery: DeliveryProgress | None = None) -> bool:
        """Show the bar as it is now; return whether the leg's terminals show it and their keys are held.

        `delivery` is what a delivery does from now on. A holder that does not answer is waited for 1 s.
        """
        if delivery is not None and delivery != self._delivery:
            self._delivery = delivery
            self._services.teller.tell(self._host.session.id)
        self.update()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOWN_S):
                while self._sending is not None and not self._sending.done():
                    await asyncio.shield(self._sending)
        leg = self._host.session.living_leg
        return leg is not None and self.can_show(leg.id) and self._shown[leg.id].holds_keys

    async def close(self) -> None:
        """Stop sending; holders keep showing what they got last."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send(self) -> None:
        """Send the bar to the leg at work, and what changes meanwhile after it."""
        while (due := self._find_due()) is not None:
            leg, bar = due
            if not await self._try_sending(leg, bar):
                await asyncio.sleep(_AGAIN_S)

    def _find_due(self) -> tuple[LegMonitor, HandoffBar] | None:
        leg = self._host.session.living_leg
        live = self._live.get(leg.id) if leg is not None else None
        if live is None or live.leg.headless or live.gone.is_set():
            return None
        bar = self.bar
        if not bar.texts and live.leg.id not in self._types_on:
            bar = build_question_bar(self._host.session)
        return None if self._shown.get(live.leg.id) == bar else (live, bar)

    async def _try_sending(self, live: LegMonitor, bar: HandoffBar) -> bool:
        holder, texts = live.holder, list(bar.texts)
        try:
            if bar.only_held:
                await holder.request("asking", texts=texts)
            else:
                await holder.request("bar", texts=texts, holds_keys=bar.holds_keys, line=live.shown_input)
        except HolderError as error:
            _log.info("bar-not-shown leg=%s why=%s", live.leg.id, error.why)
            if error.why in _PASSING:
                return False
            if bar.only_held:
                self._types_on.add(live.leg.id)
                return True
            # A holder of an earlier version: its terminals are told by lines, and keys cannot wait there.
            self._unable.add(live.leg.id)
        self._shown = {live.leg.id: bar}
        return True


OFTEN_S = 5.0
"""Seconds within which two of the same kind count as one: a person at the machine saw the first."""
_BY_HAND = "manual"
_ASKED_FOR = "asked for"
"""The reason of a handoff that a person began on the resting screen."""


class Notification(msgspec.Struct, frozen=True):
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
        case SessionRested(why) as rest if session.state is State.RESTING and not session.is_held:
            reset = render_reset_text(rest.until, event.at, zone, assumed=rest.assumed)
            when = f" The first reset is at {reset}." if reset else ""
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
        self._tasks = BackgroundTasks(services.report)

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
            self._tasks.begin(work, name="notify")

    async def close(self) -> None:
        """Cancel all pending notifications."""
        await self._tasks.close()

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
