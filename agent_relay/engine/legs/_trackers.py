"""Track one leg for its monitor: the agent's state, its context, the signals reported, the prompts it took.

Whichever of the agent's records shows a prompt first counts.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Protocol

import msgspec

from agent_relay.detect.reported_usage import ContextGauge
from agent_relay.detect.screen_state import AgentState, InputState, believe_state, read_input, read_state
from agent_relay.domain.documents.adapter import SourceSpec, StreamRule
from agent_relay.domain.documents.record_matching import (
    find_text,
    find_value,
    is_meant,
    iter_strings,
    open_envelope,
)
from agent_relay.domain.documents.rules import Progress, Rules, SideTalk
from agent_relay.domain.events.session import PromptSeen
from agent_relay.domain.inputs import ContextFilled, Input
from agent_relay.domain.limits import (
    NEAR_BY_ADAPTER,
    NO_WISHES,
    ContextWishes,
    Level,
    NearLimitWishes,
    Reading,
    Record,
    Signal,
    Source,
)
from agent_relay.domain.screen import Screen
from agent_relay.domain.session import Leg
from agent_relay.domain.values import ClockJump, is_later, replace, start_at
from agent_relay.session.decision import Outcome
from agent_relay.session.limits.usage_limits import find_level


class MonitorConfig(msgspec.Struct, frozen=True):
    """The rules of the leg's agent, and what is known and wanted of this leg.

    `known` are (rule, text, until, decides) of signals already in the journal: a new daemon reads old records
    again. `wishes` are the marks of the leg's context; none is reported while they are off. `near` says when
    its usage windows are near their limits. `says` are what the records of a headless leg's output mean.
    """

    rules: Rules
    sources: Sequence[SourceSpec]
    zone: tzinfo
    patience_s: float
    known: frozenset[tuple[str, str, str, bool]] = frozenset()
    wishes: ContextWishes = NO_WISHES
    near: NearLimitWishes = NEAR_BY_ADAPTER
    says: Sequence[StreamRule] = ()

    def reads(self, source: Source) -> bool:
        """Tell whether the agent's adapter names such a source."""
        return any(spec.role == source for spec in self.sources)


class LegListener(Protocol):
    """Hears what the monitors of a session's legs find: their supervisor."""

    def report(self, leg: Leg, happened: Input | Outcome) -> None:
        """Take what happened to the leg."""
        ...

    def note_change(self, leg_id: str) -> None:
        """Note that the leg's records were read or its screen changed."""
        ...

    def note_names(self, leg_id: str, names: Mapping[str, str]) -> None:
        """Note what the agent calls its own session now."""
        ...


_NEW_S = 10.0
"""Seconds in which the screen alone is not believed, for a leg that announces its state; measured: 0.4 s."""


class SignalFilter:
    """Finds signals not reported yet; `known` are (rule, redacted text, until, decides)."""

    def __init__(self, known: Iterable[tuple[str, str, str, bool]]) -> None:
        self._known = set(known)

    def list_new(self, signals: Iterable[Signal]) -> list[Signal]:
        """Return the signals not reported yet, their evidence redacted; they are known from now on."""
        # Most legs begin without one, and the rules take long to load.
        from agent_relay.redact.text import redact_text

        found = []
        for signal in signals:
            until = signal.resets_at.isoformat() if signal.resets_at else ""
            text = redact_text(signal.evidence.text).text
            said = (signal.rule, text, until)
            # What a screen showed first in the same words must not keep the record that decides from acting.
            if (*said, True) not in self._known and (*said, signal.decides) not in self._known:
                self._known.add((*said, signal.decides))
                found.append(replace(signal, evidence=replace(signal.evidence, text=text)))
        return found

    def clear(self) -> None:
        """Forget all signals: what comes next is new, whatever it says."""
        self._known.clear()


class AgentStateTracker:
    """Tracks an agent: `state` is the last one read, `input` what the input line of `screen` holds.

    `shown_input` is what it held when it was last shown, as a question may hide it; "hidden" if it has never
    been shown, as at a sign-in.
    """

    def __init__(self, leg: Leg, config: MonitorConfig) -> None:
        self.state: AgentState = "starting"
        self.input: InputState = "hidden"
        self.shown_input: InputState = "hidden"
        self.screen: Screen | None = None
        self.moment = 0
        """Number of times the agent was reported to work, whatever its screen showed."""
        self._seen_at = 0
        self._began = start_at(leg.starting_at)
        self._rules = config.rules
        self._state_record: dict[str, object] | None = None
        self._had_turns = leg.was_ready or leg.was_busy

    def hear(self, record: Record) -> None:
        """Keep the newest record of the file in which the agent stores its own state."""
        if record.source is Source.STATE_FILE:
            self._state_record = dict(record.data)

    def shift(self, jump: ClockJump) -> None:
        """Follow a jump of the wall clock: the age of the leg stays the same."""
        self._began = self._began.after(jump)

    def see(self, screen: Screen, moment: int) -> bool:
        """Take `screen`, asked for at `moment`; return whether it differs from the one before."""
        before, self.screen, self._seen_at = self.screen, screen, moment
        self.input = read_input(self._rules, screen)
        if self.input != "hidden":
            self.shown_input = self.input
        return before is None or (before.rows, before.title) != (screen.rows, screen.title)

    def say_working(self) -> bool:
        """Set the state to busy until a newer screen shows another; return whether it was not busy."""
        if self.state == "busy":
            return False
        self.state = "busy"
        self.moment += 1
        return True

    def get_doubted_s(self, now: datetime) -> float:
        """Return the seconds for which the leg is still too new to be believed by its screen alone."""
        return max(0.0, _NEW_S - self._began.get_elapsed(now).total_seconds())

    def read(self, *, now: datetime, was_prompted: bool) -> AgentState | None:
        """Read the state from the screen; return it if it is known and another one than before.

        `was_prompted` is whether the leg took a prompt. A screen that is older than the agent's work does not
        show that it waits for a prompt.
        """
        if self.screen is None:
            return None
        is_new = self.get_doubted_s(now) > 0
        state = read_state(self._rules, self.screen, state_record=self._state_record, is_new=is_new)
        state = believe_state(self._rules, state, had_turns=self._had_turns or was_prompted)
        self._had_turns = self._had_turns or state == "ready"
        is_late = state == "ready" and self._seen_at < self.moment
        if is_late or state in ("unknown", self.state):
            return None
        self.state = state
        return state


class ContextTracker:
    """Tracks how full the leg's context is; `reading` is what the agent last reported."""

    def __init__(self, leg: Leg, config: MonitorConfig) -> None:
        self.reading: Reading | None = None
        self._leg = leg
        self._wishes = config.wishes
        self._gauge = ContextGauge(config.rules.context, started_at=leg.starting_at)
        self._level = Level.UNKNOWN

    def shift(self, jump: ClockJump) -> None:
        """Follow a jump of the wall clock."""
        self._gauge.shift(jump)

    def hear(self, record: Record, *, now: datetime) -> ContextFilled | None:
        """Return an input if the record shows that the leg's context passed a mark, else `None`.

        Also `None` if the user wants no marks.
        """
        reading = self._gauge.hear(record, now=now)
        if reading is None:
            return None
        self.reading = reading
        if self._wishes.mode == "off":
            return None
        level = find_level(reading.used, reading.room, self._wishes)
        if level is self._level:
            return None
        self._level = level
        return ContextFilled(self._leg.id, reading.used, reading.room, reading.at, reading.model)


# A hook is a program of its own: on a busy machine its record is that much younger than the prompt's row.
_SLACK = timedelta(seconds=5)
_MOST_TALKS = 1_000


class NewestPrompt:
    """The user's newest words to one leg, and whether the agent's own transcript was seen to hold them.

    Make it with the leg as the journal knows it: what an earlier daemon reported is not reported again.
    `sides` tell which conversations are another agent's: a prompt in such a one is not the user's. `has_rows`
    is whether the transcript is read while the agent works.
    """

    def __init__(
        self, leg: Leg, signs: Sequence[Progress], sides: Sequence[SideTalk] = (), *, has_rows: bool = True
    ) -> None:
        self._leg = leg
        self._signs = signs
        self._sides = sides
        self._side_talks: set[str] = set()
        self._has_rows = has_rows
        self._asked_at = leg.asked.at if leg.asked is not None else None
        self._recorded_at: datetime | None = None
        self._passed_at: datetime | None = None

    def shift(self, jump: ClockJump) -> None:
        """Follow a jump of the wall clock: after one back, later prompts count as newer all the same."""
        if not jump.is_back:
            return
        self._leg = replace(self._leg, starting_at=min(self._leg.starting_at, jump.since))
        self._asked_at, self._recorded_at, self._passed_at = (
            at + jump.by if at is not None else None
            for at in (self._asked_at, self._recorded_at, self._passed_at)
        )

    def hear(self, record: Record, native_id: str, *, now: datetime) -> PromptSeen | None:
        """Return what to journal if `record` shows a newer prompt; `native_id` is the conversation now."""
        self._note_side(record)
        if record.at is None or record.at < self._leg.starting_at:
            return None
        # One moment to come, by a clock that was set back since, must not outdate all others.
        at = min(record.at, now)
        data = open_envelope(record).data
        text, left_out = "", 0
        for sign in self._signs:
            if sign.source is record.source and is_meant(sign.where, data) and self._is_users(sign, data):
                self._note_row(record.source, at, sign)
                if sign.text:
                    text = find_text(data, sign.text) or ""
                    left_out = _count_left_out(find_value(data, sign.text), text)
        if text:
            # Most legs begin without one, and the phrases take long to load.
            from agent_relay.packet.extract.requests import strip_packets

            text = strip_packets(text)
        if not text or (self._asked_at is not None and not is_later(at, self._asked_at, now)):
            return None
        self._asked_at = at
        return PromptSeen(self._leg.id, text, at.isoformat(), native_id, left_out)

    def is_recorded(self) -> bool:
        """Return whether the transcript holds the newest prompt or what follows it, as far as is known.

        True for an agent whose transcript does not show prompts: it is not waited for.
        """
        if self._asked_at is None or not self._has_rows or not self._tells(Source.TRANSCRIPT):
            return True
        is_there = self._recorded_at is not None and self._recorded_at >= self._asked_at - _SLACK
        return is_there or (self._passed_at is not None and self._passed_at >= self._asked_at)

    def _note_side(self, record: Record) -> None:
        """Note a conversation that the record says is another agent's."""
        for side in self._sides:
            if side.source is record.source and is_meant(side.where, record.data):
                talk = find_value(record.data, side.talk)
                if isinstance(talk, str) and len(self._side_talks) < _MOST_TALKS:
                    self._side_talks.add(talk)

    def _is_users(self, sign: Progress, data: object) -> bool:
        """Return whether the record belongs to the user's own conversation."""
        talk = find_value(data, sign.talk) if sign.talk else None
        return not (isinstance(talk, str) and talk in self._side_talks)

    def _tells(self, source: Source) -> bool:
        return any(sign.source is source and sign.means == "prompt" for sign in self._signs)

    def _note_row(self, source: Source, at: datetime, sign: Progress) -> None:
        """Note the time of a transcript row; rows may come in any order, and the newest one counts."""
        if source is not Source.TRANSCRIPT:
            return
        if sign.means == "prompt":
            self._recorded_at = max(at, self._recorded_at or at)
        else:
            self._passed_at = max(at, self._passed_at or at)


def _count_left_out(value: object, text: str) -> int:
    """Return how many characters of a long text were not read."""
    return len(value) - len(text) if isinstance(value, str) else 0


_COMPARED_LENGTH = 120
"""The number of letters and digits compared: agents change white space, marks and the rest at will."""
_SURE_LENGTH = 24
"""Characters from which on a text is recognized in any record: no other text shares so many."""
_KEPT_PROMPTS = 32
_KEPT_LENGTH = 2000


class RelayPrompt:
    """The text that relay gives one leg, and whether a record that holds it was read.

    A prompt of somebody else's is no sign that the agent took ours, and neither is work. `tells_words` is
    whether the records that show a prompt include its words.
    """

    def __init__(self, *, tells_words: bool) -> None:
        self.is_heard = False
        self._tells_words = tells_words
        self._marks: tuple[str, ...] = ()
        self._prompts: deque[str] = deque(maxlen=_KEPT_PROMPTS)

    @property
    def is_comparable(self) -> bool:
        """True if records can show the text at all: it may be too short to be recognized by its words."""
        return any(self._tells_words or len(mark) >= _SURE_LENGTH for mark in self._marks)

    def expect(self, *texts: str) -> None:
        """Look for `texts` from now on, each of which identifies what is given; check past prompts, too."""
        self._marks = tuple(mark for mark in (_mark(text) for text in texts) if mark)
        self.is_heard = any(mark in prompt for prompt in self._prompts for mark in self._marks)

    def hear(self, data: object) -> None:
        """Look for the words anywhere in a record of this leg."""
        sure = [mark for mark in self._marks if len(mark) >= _SURE_LENGTH]
        if sure and not self.is_heard:
            texts = (_squeeze(text) for text in iter_strings(data))
            self.is_heard = any(mark in text for text in texts for mark in sure)

    def hear_prompt(self, words: str) -> None:
        """Note that the agent took a prompt of these words, whosever they are."""
        text = _squeeze(words)
        self._prompts.append(_cut(text))
        self.is_heard = self.is_heard or any(mark in text for mark in self._marks)


def hear_record(own: RelayPrompt, signs: "Sequence[Progress]", record: Record, *, since: datetime) -> None:
    """Pass a record of its leg, which began at `since`, to `own`; `signs` tell which records are prompts.

    In an event stream, a record without a time is from now; in any other source it may be from any time, and
    is ignored.
    """
    is_now = record.at is None and record.source is Source.EVENT
    if not is_now and (record.at is None or record.at < since):
        return
    data = open_envelope(record).data
    own.hear(data)
    for sign in signs:
        if sign.source is record.source and sign.text and is_meant(sign.where, data):
            words = find_value(data, sign.text)
            own.hear_prompt(words if isinstance(words, str) else find_text(data, sign.text) or "")


def _squeeze(text: str) -> str:
    """Return the letters and digits of `text`."""
    return "".join(filter(str.isalnum, text))


def _mark(text: str) -> str:
    """Return the part of `text`, which may be long, that is looked for."""
    return _squeeze(text[: 4 * _COMPARED_LENGTH])[:_COMPARED_LENGTH]


def _cut(text: str) -> str:
    """Return the two ends of a long prompt: a packet precedes the words that are compared."""
    return text if len(text) <= 2 * _KEPT_LENGTH else f"{text[:_KEPT_LENGTH]} {text[-_KEPT_LENGTH:]}"
