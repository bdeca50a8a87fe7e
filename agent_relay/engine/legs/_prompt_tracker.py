"""The prompts a leg took: the user's newest one, and whether the agent recorded what relay typed.

Whichever of the agent's records shows a prompt first counts.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from agent_relay.domain.documents.record_matching import (
    find_text,
    find_value,
    is_meant,
    iter_strings,
    open_envelope,
)
from agent_relay.domain.documents.rules import Progress, SideTalk
from agent_relay.domain.events.session import PromptSeen
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.session import Leg
from agent_relay.domain.values import ClockJump, is_later
from agent_relay.packet.requests import strip_packets

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
        self,
        leg: Leg,
        signs: Sequence[Progress],
        sides: Sequence[SideTalk] = (),
        *,
        has_rows: bool = True,
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


_LENGTH = 120
"""How many letters and digits are compared: agents change white space, marks and the rest at will."""
_SURE = 24
"""A text of at least this length is recognized in any record: no other text shares it."""
_KEPT = 32
_KEPT_LENGTH = 2000


class RelayPrompt:
    """What relay gives one leg, and whether a record that holds it was read.

    A prompt of somebody else's is no sign that the agent took ours, and neither is work. `tells_words` is
    whether the records that show a prompt include its words.
    """

    def __init__(self, *, tells_words: bool) -> None:
        self.is_heard = False
        self._tells_words = tells_words
        self._marks: tuple[str, ...] = ()
        self._prompts: deque[str] = deque(maxlen=_KEPT)

    @property
    def is_comparable(self) -> bool:
        """Whether records can show the text at all: it may be too short to be recognized by its words."""
        return any(self._tells_words or len(mark) >= _SURE for mark in self._marks)

    def expect(self, *texts: str) -> None:
        """Look for `texts` from now on, each of which identifies what is given; check past prompts, too."""
        self._marks = tuple(mark for mark in (_mark(text) for text in texts) if mark)
        self.is_heard = any(mark in prompt for prompt in self._prompts for mark in self._marks)

    def hear(self, data: object) -> None:
        """Look for the words anywhere in a record of this leg."""
        sure = [mark for mark in self._marks if len(mark) >= _SURE]
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
    return _squeeze(text[: 4 * _LENGTH])[:_LENGTH]


def _cut(text: str) -> str:
    """Return the two ends of a long prompt: a packet precedes the words that are compared."""
    return text if len(text) <= 2 * _KEPT_LENGTH else f"{text[:_KEPT_LENGTH]} {text[-_KEPT_LENGTH:]}"
