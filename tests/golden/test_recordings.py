import os
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_relay.faces.cli.replay import replay_recording
from tests.support.built_in import load_agent_rules
from tests.support.sizes import sized

HERE = os.path.dirname(__file__)
with open(os.path.join(HERE, "truth.toml"), "rb") as file:
    TRUTH = tomllib.load(file)["recording"]
WITH_RECORDS = [entry for entry in TRUTH if "transcript" in entry]
WITHOUT = [entry for entry in TRUTH if "transcript" not in entry]
RETRIES = (
    "claude/claude-2.1.197-api429-retry-120x40",
    "claude/claude-2.1.330-api429-retry-80x24",
    "claude/claude-2.1.330-auth-401-120x40",
    "claude/claude-2.1.330-connrefused-retry-120x40",
    "claude/claude-2.1.330-overloaded-529-retry-sub-120x40",
)
PARTS = 8
CUT_PARTS = 12
"""Several workers share the recordings."""
# Countdowns on a screen are cut to minutes, and their offsets tell the time only roughly.
ROUNDING = timedelta(minutes=2)
CHUNKS = (1, 7, 4096)
Found = tuple[str, str, datetime | None, str]


def replay(entry: Mapping[str, Any], *, chunk: int = 0, with_records: bool = False) -> dict[str, object]:
    agent = entry["name"].partition("/")[0]
    transcript = os.path.join(HERE, "transcripts", entry["transcript"]) if with_records else None
    return replay_recording(
        os.path.join(HERE, "recordings", entry["name"] + ".raw.gz"),
        agent=agent,
        rules=load_agent_rules(agent),
        chunk=chunk,
        transcript=transcript,
        started_at=None if with_records else datetime.fromisoformat(entry["started_at"]),
        zone=UTC,
    )


def list_found(result: dict[str, object]) -> list[Found]:
    signals = result["signals"]
    assert isinstance(signals, list)
    return [
        (
            signal["kind"],
            signal["scope"],
            datetime.fromisoformat(signal["resets_at"]) if signal["resets_at"] else None,
            signal["model"] or "",
        )
        for signal in signals
        if signal["kind"] != "retry"
    ]


def parse(line: str) -> Found:
    kind, scope, reset, *model = line.split(" ", 3)
    moment = None if reset == "-" else datetime.fromisoformat(reset).replace(tzinfo=UTC)
    return kind, scope, moment, model[0] if model else ""


def agree(found: list[Found], expected: list[Found]) -> bool:
    if len(found) != len(expected):
        return False
    return all(
        (one[0], one[1], one[3]) == (other[0], other[1], other[3]) and is_near(one[2], other[2])
        for one, other in zip(found, expected, strict=True)
    )


def is_near(one: datetime | None, other: datetime | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) <= ROUNDING


def test_every_recording_has_its_truth() -> None:
    """A recording nobody judged would test nothing."""
    there = {
        f"{os.path.basename(folder)}/{file[: -len('.raw.gz')]}"
        for folder, _, files in os.walk(os.path.join(HERE, "recordings"))
        for file in files
        if file.endswith(".raw.gz")
    }
    assert there == {entry["name"] for entry in TRUTH}
    assert len(there) == 183


def list_wrong(entries: Sequence[Mapping[str, Any]], *, with_records: bool) -> list[tuple[str, object]]:
    """The recordings in which something else is found than their truth says, and what is found."""
    wrong: list[tuple[str, object]] = []
    for entry in entries:
        result = replay(entry, with_records=with_records)
        expected = [parse(line) for line in entry["acts" if with_records else "screen"]]
        signals = result["signals"]
        assert isinstance(signals, list)
        decides = not with_records and any(signal["decides"] for signal in signals)
        if decides or not agree(list_found(result), expected):
            wrong.append((entry["name"], signals if decides else list_found(result)))
    return wrong


@pytest.mark.parametrize("part", [pytest.param(0), *sized(range(1, PARTS), range(1, PARTS))])
def test_with_the_run_s_records_exactly_the_true_limits_act(part: int) -> None:
    """No decoy, no healing retry and no repainted history may stop an agent; no limit may be missed."""
    assert list_wrong(WITH_RECORDS[part::PARTS], with_records=True) == []


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(WITHOUT, id="of runs without records", marks=pytest.mark.size("test")),
        *(
            pytest.param(WITH_RECORDS[part::PARTS], id=str(part), marks=pytest.mark.size("every"))
            for part in range(PARTS)
        ),
    ],
)
def test_the_screen_alone_shows_what_it_shows_and_decides_nothing(entries: list[dict[str, str]]) -> None:
    """An agent can forge its own limit row, so all four have a structured source that must agree."""
    assert list_wrong(entries, with_records=False) == []


def test_a_retry_is_seen_whichever_way_it_is_worded() -> None:
    """One that goes on for long is a limit nobody names; one that cannot be seen, never is."""
    words = {}
    for entry in (one for one in TRUTH if one["name"] in RETRIES):
        signals = replay(entry)["signals"]
        assert isinstance(signals, list)
        words[entry["name"]] = [one["evidence"]["text"][-12:] for one in signals if one["kind"] == "retry"]
    assert words == {name: ["attempt 1/10"] for name in RETRIES}


@pytest.mark.size("test")
def test_a_run_that_left_only_its_database_and_log_is_judged_with_its_screen() -> None:
    """A retry row acts when the transcript shows the prompt unanswered and nobody said its words."""
    runs = [
        ("anthropic-429", "anthropic-429-killed-in-retry", ["silent-limit account 2026-11-20T11:29"]),
        ("openai-insufficient-quota", "insufficient-quota", ["limit billing -"]),
        ("openai-insufficient-quota-mid-session", "insufficient-quota-mid-session", ["limit billing -"]),
        ("anthropic-credit-too-low", "credit-too-low", ["limit billing -"]),
        ("decoy", "decoy", []),
        ("edit-shell", "edit-shell", []),
        ("approval", "approval", []),
        ("compaction", "compaction", []),
        ("native-resume-id", "native-resume", []),
        ("native-fork", "native-resume", []),
    ]
    entries = [
        {
            "name": f"opencode/opencode-1.18.33-{recording}-120x40",
            "transcript": f"opencode/{run}",
            "acts": acts,
        }
        for recording, run, acts in runs
    ]
    assert list_wrong(entries, with_records=True) == []


def test_no_harmless_recording_has_a_limit_that_acts() -> None:
    """The truth itself must be sound: nothing called harmless lists a limit."""
    acts = [
        (entry["name"], act) for entry in TRUTH if entry["truth"] == "none" for act in entry.get("acts", [])
    ]
    assert [(name, act) for name, act in acts if act.split()[1] != "auth"] == []


@pytest.mark.size("every")
@pytest.mark.parametrize("part", range(CUT_PARTS))
@pytest.mark.timeout(600)
def test_the_result_is_the_same_however_the_bytes_are_cut(part: int) -> None:
    """A pipe delivers any sizes; the smallest splits every escape sequence and every character.

    With records too: the timeline of records and screens is fixed by offsets, not by reads.
    """
    differ = []
    for entry in TRUTH[part::CUT_PARTS]:
        for with_records in (False, True) if "transcript" in entry else (False,):
            whole = replay(entry, with_records=with_records)
            cut = (replay(entry, chunk=chunk, with_records=with_records) for chunk in CHUNKS)
            differ += [(entry["name"], chunk) for chunk, one in zip(CHUNKS, cut, strict=True) if one != whole]
    assert differ == []
