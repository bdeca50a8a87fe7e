"""Usage readers over recorded transcripts that are cut or damaged anywhere, or are none at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.transcripts.usage_readers import USAGE_READERS
from agent_relay.transcripts.usage_records import AnswerUsage, ReaderState, UsageRecord, note_moment
from agent_relay.usage._dedupe import dedupe_marks
from tests.transcripts.rows import read_sample

SAMPLES = {
    "claude-compact.jsonl": "claude-jsonl",
    "claude-edit.jsonl": "claude-jsonl",
    "claude-limit.jsonl": "claude-jsonl",
    "claude-resume.jsonl": "claude-jsonl",
    "codex-codemode.jsonl": "codex-rollout",
    "codex-compact.jsonl": "codex-rollout",
    "codex-limit.jsonl": "codex-rollout",
    "codex-resume.jsonl": "codex-rollout",
    "gemini-compress.jsonl": "gemini-jsonl",
    "gemini-edit.jsonl": "gemini-jsonl",
    "gemini-limit.jsonl": "gemini-jsonl",
    "gemini-resume.jsonl": "gemini-jsonl",
}


def _read(name: str, *blocks: bytes) -> list[UsageRecord]:
    read, memory = USAGE_READERS[SAMPLES[name]]().read, ReaderState()
    assert read is not None
    return [mark for block in blocks for mark in read(block, memory)]


@pytest.mark.parametrize("name", list(SAMPLES))
def test_a_file_read_in_two_halves_says_what_it_says_whole(name: str) -> None:
    """A growing file is read wherever the last look stopped: at any line's end."""
    data = read_sample(name)
    whole = _read(name, data)
    assert any(isinstance(mark, AnswerUsage) for mark in whole) or "limit" in name
    cut = data.find(b"\n") + 1
    while cut:
        assert _read(name, data[:cut], data[cut:]) == whole
        cut = data.find(b"\n", cut) + 1


@settings(max_examples=60)
@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 10**6), st.binary(max_size=12), st.integers(0, 400))
def test_damage_anywhere_is_never_more_than_damage(name: str, at: int, junk: bytes, gone: int) -> None:
    """Whatever stands in a file, reading it ends, raises nothing, and counts nothing negative or twice."""
    data = read_sample(name)
    at %= len(data)
    marks = _read(name, data[:at] + junk + data[at + gone :])
    used = [one for native in dedupe_marks("one", [marks, marks]) for one in native.used]
    assert all(min(one.input, one.cached, one.cache_write, one.output, one.reasoning) >= 0 for one in used)
    assert len({one.key for one in used if one.key}) == len([one for one in used if one.key])


@settings(max_examples=60)
@given(st.sampled_from(sorted(SAMPLES)), st.binary(max_size=300))
def test_what_is_no_transcript_says_nothing(name: str, data: bytes) -> None:
    """Binaries, logs and empty files lie in agents' folders, too."""
    assert not any(isinstance(mark, AnswerUsage) for mark in _read(name, data))


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "1969-01-01", "soon", ""]
)
def test_a_time_that_cannot_be_is_no_time(text: str) -> None:
    """Its day could not be named, or would come before everything: the last time known stands for it."""
    memory = ReaderState(at=1_795_168_800_000)
    assert note_moment(memory, text) == 1_795_168_800_000
    assert note_moment(memory, "2026-11-20T10:00:05Z") == 1_795_168_805_000
