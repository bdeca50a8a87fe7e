"""An agent that goes on by itself at its limit's reset, as its real screens and records say so."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from agent_relay.detect.detector import Detector
from agent_relay.domain.limits import Record, Signal
from agent_relay.domain.screen import Screen
from agent_relay.domain.values import AgentName
from agent_relay.sources.recording import read_evidence, read_recording
from agent_relay.sources.replay import find_start, play
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support.built_in import load_agent_rules

HERE = os.path.dirname(__file__)
RULES = load_agent_rules("claude")
WAITS_AND_ENDS = {
    "session-limit-120x40": ["2026-11-23T11:50:21"],
    "session-limit-subagent-120x40": ["2026-11-23T11:52:56"],
    "session-limit-esc-120x40": ["2026-11-23T11:50:21", "-"],
    "session-limit-continue-120x40": ["2026-11-23T09:55:11", "-"],
    "session-limit-options-wait-80x24": ["2026-11-23T11:55:34", "-"],
    "weekly-limit-wait-120x40": ["2026-11-26T21:17:01"],
    "weekly-limit-wait-80x24": ["2026-11-26T21:17:00"],
    "weekly-limit-80x24": [],
    "org-spend-limit-120x40": [],
    "decoy-prose-120x40": [],
    "decoy-user-prompt-120x40": [],
    "decoy-file-80x24": [],
    "normal-text-120x40": [],
}


class Noting(Detector):
    """A detector that notes each change of what the agent says of going on by itself."""

    def begin(self) -> list[str]:
        """Return the list that the changes are added to."""
        self.said: list[str] = []
        return self.said

    def look(self, screen: Screen, *, now: datetime, at_offset: int) -> tuple[Signal, ...]:
        """Note what is known after the screen."""
        signals = super().look(screen, now=now, at_offset=at_offset)
        self._note()
        return signals

    def hear(self, record: Record, *, now: datetime) -> tuple[Signal, ...]:
        """Note what is known after the record."""
        signals = super().hear(record, now=now)
        self._note()
        return signals

    def _note(self) -> None:
        said = f"{self.continues_at:%Y-%m-%dT%H:%M:%S}" if self.continues_at is not None else "-"
        if said != (self.said[-1] if self.said else "-"):
            self.said.append(said)


def play_run(name: str, *, with_screen: bool = True, with_records: bool = True) -> list[str]:
    """Play one run; return the changes."""
    recording = read_recording(os.path.join(HERE, "recordings", "claude", f"claude-2.1.330-{name}.raw.gz"))
    records = read_evidence(os.path.join(HERE, "transcripts", "claude", f"claude-2.1.330-{name}"))
    started_at = find_start(records, typed=recording.typed, length_s=recording.timing.length_s)
    library = find_library()
    assert started_at is not None
    assert library is not None
    detector = Noting(
        RULES, agent=AgentName("claude"), started_at=started_at, zone=UTC, trusts_screen=not with_records
    )
    said = detector.begin()
    kept: Sequence[Record] = records if with_records else ()
    for record in kept:
        detector.recall(record)
    data = recording.data if with_screen else b""
    play(
        iter([data]),
        total=len(data),
        timing=recording.timing,
        emulator=Emulator(library, recording.cols, recording.rows),
        detector=detector,
        records=kept,
        started_at=started_at,
    )
    return said


def leave_exact(said: Sequence[str]) -> list[str]:
    """Return the moments without the coarse ones that an exact one follows within its minute."""
    return [
        one for index, one in enumerate(said) if index + 1 == len(said) or said[index + 1][:16] != one[:16]
    ]


def test_a_wait_is_known_from_its_beginning_to_its_end() -> None:
    """Who takes the work over must know that its owner will come back by itself, and exactly when."""
    assert {name: leave_exact(play_run(name)) for name in WAITS_AND_ENDS} == WAITS_AND_ENDS


def test_the_records_alone_tell_of_it() -> None:
    """A session that is adopted, or whose screen cannot be read, has its records only."""
    told = {name: leave_exact(play_run(name, with_screen=False)) for name in WAITS_AND_ENDS}
    assert told == WAITS_AND_ENDS


def test_the_screen_alone_tells_of_it_by_the_minute() -> None:
    """Where nothing else can be read; and no quoted countdown is one."""
    told = {name: [one[:16] for one in play_run(name, with_records=False)] for name in WAITS_AND_ENDS}
    assert told == {name: [one[:16] for one in exact] for name, exact in WAITS_AND_ENDS.items()}


def test_what_keeps_it_from_going_on_is_data() -> None:
    """The keys."""
    assert RULES.continues.cancel == "\x1b"
