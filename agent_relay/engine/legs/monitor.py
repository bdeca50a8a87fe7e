"""Monitor one living leg: its screen when it settles, its structured evidence, its end."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agent_relay.detect.detector import Detector
from agent_relay.domain import inputs
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.documents.record_matching import is_meant, open_envelope
from agent_relay.domain.limits import Record, Signal, Source
from agent_relay.domain.session import Leg
from agent_relay.domain.values import AgentName, replace, start_at
from agent_relay.engine.legs import _trackers as trackers
from agent_relay.engine.services import LastScreen, LaunchEnvironment
from agent_relay.session.decision import Outcome
from agent_relay.session.turns.output import TurnVerdict
from agent_relay.sources.record_fields import find_names
from agent_relay.system.clock import Clock, JumpingClock
from agent_relay.terminal.holder_client import HolderConnection, HolderError

if TYPE_CHECKING:
    from agent_relay.detect.screen_state import AgentState, InputState
    from agent_relay.detect.window_tracks import WindowReading as Window
    from agent_relay.domain.limits import Reading
    from agent_relay.domain.screen import Screen

_log = logging.getLogger(__name__)

_REPAINT_S = 0.5
"""Longest time for an agent known to work to show it, in seconds; then its screen is read again."""
_RECORD_S = 1.5
"""Longest wait for a prompt's row, in seconds; the slowest agent writes its rows ten times a second."""
_RECORD_LOOK_S = 0.1
_SHORTEST_TICK_S = 0.05
_LONGEST_TICK_S = 30.0
"""Longest time between readings of the wall clock, in seconds: the loop's clock may drift apart from it."""


class LegMonitor:
    """Reads one leg and reports what it finds.

    `gone` is set when the agent has ended; `prompted` is whether the leg took a prompt, `own` whether that
    was relay's; `heard` counts records, `verdict` is how a headless turn goes, `seen` what was last shown,
    `names` what the agent calls its own session; `launch_environment` is what the leg was launched with.
    `sees_input` and `sees_prompt` are whether its screen shows the input line, and that a prompt is waited
    for; `hears_prompts` whether records show prompts, `hears_old_prompts` whether also those taken while no
    daemon listened, `is_listening` whether its live stream, if it has one, was heard. `cancel_keys` keep the
    agent from going on by itself; empty if it has none.
    """

    def __init__(
        self,
        leg: Leg,
        config: trackers.MonitorConfig,
        *,
        clock: Clock,
        adapter: Adapter,
        launch_environment: LaunchEnvironment,
        poke: Callable[[], Awaitable[None]],
        listener: trackers.LegListener,
    ) -> None:
        self.leg = leg
        self.adapter = adapter
        self.launch_environment = launch_environment
        self.gone = asyncio.Event()
        self.prompted = False
        self.heard = 0
        self.verdict = TurnVerdict(config.says)
        self.seen = LastScreen()
        self.names: dict[str, str] = {}
        self.sees_input = config.rules.input is not None
        self.sees_prompt = any(rule.state == "ready" for rule in config.rules.states)
        self.cancel_keys = config.rules.continues.cancel
        self._holder: HolderConnection | None = None
        self._was_read = asyncio.Condition()
        self._listener = listener
        self._config = config
        self._clock = JumpingClock(clock)
        self._began = start_at(clock.now())
        self._poke = poke
        self._known = trackers.SignalFilter(config.known)
        self._state_tracker = trackers.AgentStateTracker(leg, config)
        self._again: asyncio.Task[None] | None = None
        self._detector = _build_detector(leg, config)
        self._context_tracker = trackers.ContextTracker(leg, config)
        progress, sides = config.rules.progress, config.rules.context.sides
        self._prompt = trackers.NewestPrompt(leg, progress, sides, has_rows=config.reads(Source.TRANSCRIPT))
        self._prompt_signs = [one for one in progress if one.means == "prompt" and config.reads(one.source)]
        self.hears_prompts = bool(self._prompt_signs)
        self.hears_old_prompts = any(sign.source is not Source.EVENT for sign in self._prompt_signs)
        self.is_listening = False
        self.own = trackers.RelayPrompt(tells_words=any(sign.text for sign in self._prompt_signs))
        self._ticker: asyncio.TimerHandle | None = None
        self._reported_continues: datetime | None = None

    @property
    def state(self) -> "AgentState":
        """The agent's state as last seen."""
        return self._state_tracker.state

    @property
    def input(self) -> "InputState":
        """The state of the input line as last seen."""
        return self._state_tracker.input

    @property
    def shown_input(self) -> "InputState":
        """The state of the input line when it was last shown; "hidden" if it never was."""
        return self._state_tracker.shown_input

    @property
    def screen(self) -> "Screen | None":
        """The screen read last."""
        return self._state_tracker.screen

    @property
    def reading(self) -> "Reading | None":
        """The agent's last report of its context."""
        return self._context_tracker.reading

    @property
    def windows(self) -> "tuple[Window, ...]":
        """The agent's last report of its usage windows."""
        return self._detector.windows

    @property
    def continues_at(self) -> datetime | None:
        """The reset after which the agent says that it will go on by itself."""
        return self._detector.continues_at

    @property
    def holder(self) -> HolderConnection:
        """The connection to the leg's holder."""
        if self._holder is None:
            raise HolderError("the leg's holder is not connected yet")
        return self._holder

    def connect(self, holder: HolderConnection, holder_pid: int, child_pid: int, child_born: int) -> None:
        """Take the connection to the leg's holder, and the pids of holder and agent."""
        self._holder = holder
        self.leg = replace(self.leg, holder_pid=holder_pid, child_pid=child_pid, child_born=child_born)

    async def reconnect(self, folder: str) -> None:
        """Open another connection to the holder in `folder`. Raise HolderError if there can be none."""
        before, self._holder = self.holder, await HolderConnection.open(folder)
        await before.close()

    async def close(self) -> None:
        """Close the connection to the holder; it and its agent, if they live, run on."""
        await self.holder.close()

    async def run(self) -> inputs.LegGone | None:
        """Follow the leg; return how its agent ended, `None` if the connection to the holder ended first.

        Raises HolderError if the holder does not answer; then `run` may be called again.
        """
        status = await self.holder.watch()
        ended = status.get("exit")
        if isinstance(ended, dict):
            return await self._collect(ended)
        later = asyncio.create_task(self._read_later())
        try:
            await self._look()
            return await self._follow()
        finally:
            later.cancel()

    async def end(self) -> None:
        """Mark the agent as gone, and wake whoever waits for it."""
        self.gone.set()
        if self._ticker is not None:
            self._ticker.cancel()
        if self._again is not None:
            self._again.cancel()
        await self._wake()

    async def hear(self, records: Sequence[Record]) -> None:
        """Report what the records of structured sources say."""
        now = self._read_clock()
        self.heard += len(records)
        for record in records:
            self._state_tracker.hear(record)
            self.is_listening = self.is_listening or record.source is Source.EVENT
            if record.source is Source.STREAM:
                self.verdict.hear(record.data)
            trackers.hear_record(self.own, self._prompt_signs, record, since=self.leg.starting_at)
            self._note_progress(record)
            self._rename(record)
            self._note_prompt(record, now)
            self._say(self._detector.hear(record, now=now))
            if self._detector.take_relief():
                self._listener.report(self.leg, inputs.NearLimitOver(self.leg.id))
            filled = self._context_tracker.hear(record, now=now)
            if filled is not None:
                self._listener.report(self.leg, filled)
        await self._read()
        self._listener.note_change(self.leg.id)

    def is_working(self) -> bool:
        """Tell whether the leg took a prompt, by its screen or its records, or is over."""
        return self.gone.is_set() or self.prompted or self.state == "busy"

    def say_working(self) -> None:
        """Report that the leg works if its screen does not show it any more, or not yet."""
        if self._state_tracker.say_working():
            self._listener.report(self.leg, inputs.StateSeen(self.leg.id, "busy"))
            self._again = asyncio.create_task(self._look_again())

    async def settle_evidence(self) -> None:
        """Read the records written before now, and after them the screen."""
        await self._poke()
        await self._look()

    async def wait_for_prompt(self) -> None:
        """Wait until the agent's transcript holds its newest prompt, or what follows, as far as is known.

        A limit may be detected before an agent has written the prompt that met it: rows are written in
        batches, and an agent that is ended before that may never write it. Waits for a second and a half at
        most.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + _RECORD_S
        while not self._prompt.is_recorded() and not self.gone.is_set() and clock() < until:
            await self._poke()
            await self.wait_until(
                lambda: self.gone.is_set() or self._prompt.is_recorded(), limit_s=_RECORD_LOOK_S
            )

    async def wait_until(self, is_so: Callable[[], bool], *, limit_s: float) -> bool:
        """Return whether `is_so` became true within `limit_s` seconds; check after every look and record."""
        try:
            async with asyncio.timeout(limit_s), self._was_read:
                await self._was_read.wait_for(is_so)
        except TimeoutError:
            return is_so()
        return True

    async def _follow(self) -> inputs.LegGone | None:
        async for event in self.holder.events():
            match event.get("event"):
                case "settled":
                    await self._look()
                case "exit":
                    return await self._collect(event)
                case "fault":
                    doing = str(event.get("doing")).replace(" ", "-")
                    lost = event.get("screen_lost") is True
                    _log.error("holder-fault leg=%s doing=%s screen_lost=%s", self.leg.id, doing, lost)
                case _:
                    pass
        return None

    async def _look(self) -> None:
        """Read the screen and report what it shows now."""
        moment = self._state_tracker.moment
        try:
            screen = await self.holder.screen()
        except HolderError as error:
            if error.why != "no-emulator":
                raise
            return
        is_other = self._state_tracker.see(screen, moment)
        self.seen.see(screen.joined(), self.state)
        await self._poke()
        self._say(self._detector.look(screen, now=self._read_clock(), at_offset=0))
        await self._read()
        if is_other:
            self._listener.note_change(self.leg.id)

    async def _look_again(self) -> None:
        """Read the screen again after half a second: a turn that is over shows nothing new any more."""
        await asyncio.sleep(_REPAINT_S)
        with contextlib.suppress(HolderError):
            await self._look()

    async def _read(self) -> None:
        state = self._state_tracker.read(now=self._read_clock(), was_prompted=self.prompted)
        if state is not None:
            self._listener.report(self.leg, inputs.StateSeen(self.leg.id, state))
        if self.continues_at != self._reported_continues:
            self._reported_continues = self.continues_at
            self._listener.report(self.leg, inputs.ContinueAnnounced(self.leg.id, self.continues_at))
        await self._wake()

    async def _read_later(self) -> None:
        """Read the state again once the screen alone is believed, for a leg that announces nothing."""
        await asyncio.sleep(self._state_tracker.get_doubted_s(self._read_clock()))
        await self._read()

    async def _wake(self) -> None:
        async with self._was_read:
            self._was_read.notify_all()

    def _say(self, signals: Sequence[Signal]) -> None:
        if signals:
            for signal in self._known.list_new(signals):
                self._listener.report(self.leg, inputs.SignalFound(self.leg.id, signal))
        self._plan_tick(self._read_clock())

    def _plan_tick(self, now: datetime) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        at = self._detector.wakes_at()
        if at is not None and not self.gone.is_set():
            delay_s = min(max(_SHORTEST_TICK_S, (at - now).total_seconds()), _LONGEST_TICK_S)
            self._ticker = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        self._say(self._detector.tick(now=self._read_clock()))

    def _read_clock(self) -> datetime:
        """Return the moment; first shift what counts from earlier ones if the clock has jumped since."""
        now, jump = self._clock.read()
        if jump is not None:
            self._began = self._began.after(jump)
            for one in (self._state_tracker, self._detector, self._context_tracker, self._prompt):
                one.shift(jump)
            if jump.is_back:
                self._note_set_back(jump.since)
        return now

    def _note_set_back(self, since: datetime) -> None:
        """Move the leg's start back: what it writes from now on has times before its start."""
        if since < self.leg.starting_at:
            self.leg = replace(self.leg, starting_at=since)
            self._listener.report(self.leg, inputs.ClockSetBack(self.leg.id, since))

    def _rename(self, record: Record) -> None:
        """Note that the agent works in another session of its own: it was cleared, resumed or forked.

        In an event stream, a record without a time is from now: such a stream holds no history.
        """
        is_now = record.at is None and record.source is Source.EVENT
        if is_now or (record.at is not None and record.at >= self.leg.starting_at):
            names = find_names(self._config.sources, record)
            if names and names.items() - self.names.items():
                self.names |= names
                self._listener.note_names(self.leg.id, self.names)

    def _note_prompt(self, record: Record, now: datetime) -> None:
        """Report the user's newest words if the record has them, with the conversation it names."""
        seen = self._prompt.hear(record, self.names.get("native_id", self.leg.native_id), now=now)
        if seen is not None:
            self._listener.report(self.leg, Outcome((seen,)))

    def _note_progress(self, record: Record) -> None:
        """Note who spoke; after an answer newer than this monitor, a limit is worth reporting again."""
        if record.at is None or record.at < self.leg.starting_at:
            return
        data = open_envelope(record).data
        means = {
            sign.means
            for sign in self._config.rules.progress
            if sign.source is record.source and is_meant(sign.where, data)
        }
        if "prompt" in means and not self.prompted:
            self.prompted = True
            self._listener.report(self.leg, inputs.PromptTaken(self.leg.id))
        if "answer" in means and record.at >= self._began.at:
            self._known.clear()
            self._listener.report(self.leg, inputs.Answered(self.leg.id, record.at))

    async def _collect(self, ended: Mapping[str, object]) -> inputs.LegGone:
        """Return the agent's end, after reading its last records and ending whatever it left behind."""
        status = ended.get("status")
        with contextlib.suppress(HolderError):
            await self._look()
        with contextlib.suppress(HolderError):
            await self.holder.collect()
        return inputs.LegGone(self.leg.id, "exited", status if isinstance(status, int) else -1)


def _build_detector(leg: Leg, config: trackers.MonitorConfig) -> Detector:
    return Detector(
        config.rules,
        agent=AgentName(leg.agent),
        started_at=leg.starting_at,
        zone=config.zone,
        patience_s=config.patience_s,
        near=config.near,
    )
