import os
import re
import tomllib
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.domain.documents.rules import Rules
from agent_relay.faces.cli.replay import replay_recording

HERE = os.path.dirname(__file__)
with open(os.path.join(HERE, "truth.toml"), "rb") as file:
    TRUTH = tomllib.load(file)["recording"]
WITH_RECORDS = [entry for entry in TRUTH if "transcript" in entry]
RULES: dict[str, Rules] = {}
# Countdowns on a screen are cut to minutes, and their offsets tell the time only roughly.
ROUNDING = timedelta(minutes=2)
CHUNKS = (1, 7, 4096)
Found = tuple[str, str, datetime | None, str]


def name(entry: dict[str, object]) -> str:
    return os.path.basename(str(entry["name"]))


def replay(entry: dict[str, str], *, chunk: int = 0, with_records: bool = False) -> dict[str, object]:
    agent = entry["name"].partition("/")[0]
    if agent not in RULES:
        RULES[agent] = load_rules(load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in"))
    transcript = os.path.join(HERE, "transcripts", entry["transcript"]) if with_records else None
    return replay_recording(
        os.path.join(HERE, "recordings", entry["name"] + ".raw.gz"),
        agent=agent,
        rules=RULES[agent],
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


@pytest.mark.parametrize("entry", TRUTH, ids=name)
def test_the_screen_alone_shows_what_it_shows_and_decides_nothing(entry: dict[str, str]) -> None:
    """An agent can forge its own limit row, so all four have a structured source that must agree."""
    result = replay(entry)
    expected = [parse(line) for line in entry["screen"]]
    assert agree(list_found(result), expected), list_found(result)
    signals = result["signals"]
    assert isinstance(signals, list)
    assert not any(signal["decides"] for signal in signals)


@pytest.mark.parametrize("entry", WITH_RECORDS, ids=name)
def test_with_the_run_s_records_exactly_the_true_limits_act(entry: dict[str, str]) -> None:
    """No decoy, no healing retry and no repainted history may stop an agent; no limit may be missed."""
    result = replay(entry, with_records=True)
    expected = [parse(line) for line in entry["acts"]]
    assert agree(list_found(result), expected), list_found(result)


@pytest.mark.parametrize(
    "recording",
    [
        "claude-2.1.197-api429-retry-120x40",
        "claude-2.1.330-api429-retry-80x24",
        "claude-2.1.330-auth-401-120x40",
        "claude-2.1.330-connrefused-retry-120x40",
        "claude-2.1.330-overloaded-529-retry-sub-120x40",
    ],
)
def test_a_retry_is_seen_whichever_way_it_is_worded(recording: str) -> None:
    """One that goes on for long is a limit nobody names; one that cannot be seen, never is."""
    entry = next(one for one in TRUTH if one["name"] == f"claude/{recording}")
    signals = replay(entry)["signals"]
    assert isinstance(signals, list)
    retries = [signal["evidence"]["text"] for signal in signals if signal["kind"] == "retry"]
    assert len(retries) == 1
    assert re.search(r"attempt 1/10$", retries[0])


@pytest.mark.parametrize(
    ("recording", "run", "acts"),
    [
        ("anthropic-429-120x40", "anthropic-429-killed-in-retry", ["silent-limit account 2026-11-20T11:29"]),
        ("openai-insufficient-quota-120x40", "insufficient-quota", ["limit billing -"]),
        (
            "openai-insufficient-quota-mid-session-120x40",
            "insufficient-quota-mid-session",
            ["limit billing -"],
        ),
        ("anthropic-credit-too-low-120x40", "credit-too-low", ["limit billing -"]),
        ("decoy-120x40", "decoy", []),
        ("edit-shell-120x40", "edit-shell", []),
        ("approval-120x40", "approval", []),
        ("compaction-120x40", "compaction", []),
        ("native-resume-id-120x40", "native-resume", []),
        ("native-fork-120x40", "native-resume", []),
    ],
)
def test_a_run_that_left_only_its_database_and_log_is_judged_with_its_screen(
    recording: str, run: str, acts: list[str]
) -> None:
    """A retry row acts when the transcript shows the prompt unanswered and nobody said its words."""
    entry = {"name": f"opencode/opencode-1.18.33-{recording}", "transcript": f"opencode/{run}"}
    result = replay(entry, with_records=True)
    assert agree(list_found(result), [parse(line) for line in acts]), list_found(result)


def test_no_harmless_recording_has_a_limit_that_acts() -> None:
    """The truth itself must be sound: nothing called harmless lists a limit."""
    acts = [
        (entry["name"], act) for entry in TRUTH if entry["truth"] == "none" for act in entry.get("acts", [])
    ]
    assert [(name, act) for name, act in acts if act.split()[1] != "auth"] == []


@pytest.mark.size("test")
@pytest.mark.parametrize("entry", TRUTH, ids=name)
@pytest.mark.timeout(600)
def test_the_result_is_the_same_however_the_bytes_are_cut(entry: dict[str, str]) -> None:
    """A pipe delivers any sizes; the smallest splits every escape sequence and every character."""
    whole = replay(entry)
    for chunk in CHUNKS:
        assert replay(entry, chunk=chunk) == whole, chunk


@pytest.mark.size("test")
@pytest.mark.parametrize("entry", WITH_RECORDS, ids=name)
@pytest.mark.timeout(600)
def test_records_do_not_make_the_cut_matter(entry: dict[str, str]) -> None:
    """The timeline of records and screens is fixed by offsets, not by reads."""
    whole = replay(entry, with_records=True)
    for chunk in CHUNKS:
        assert replay(entry, chunk=chunk, with_records=True) == whole, chunk
