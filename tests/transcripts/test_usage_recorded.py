"""What the programs recorded when a session was resumed, compacted or forked counts what was used, once.

The samples are files of the real programs, whose provider's answers had these counts; long texts that no
figure is made of are left out.
"""

import json
from collections.abc import Sequence

from agent_relay.transcripts._claude_usage import read_claude_usage
from agent_relay.transcripts._codex_usage import read_codex_usage
from agent_relay.transcripts._gemini import read_gemini_usage
from agent_relay.transcripts._opencode import read_opencode_message, read_opencode_session
from agent_relay.transcripts.usage_records import ReaderState, UsageRecord, list_answers
from agent_relay.usage._dedupe import Native, dedupe_marks
from tests.transcripts.rows import read_sample
from tests.transcripts.totals import sum_used


def _count(natives: Sequence[Native]) -> list[tuple[str, int, int]]:
    """Each session's last letters, its answers and its prompts."""
    return [(one.session[-4:], len(list_answers(one.used)), len(one.prompts)) for one in natives]


def _read_rows(name: str) -> list[UsageRecord]:
    """The marks of rows of opencode's two tables."""
    marks, memory = list[UsageRecord](), ReaderState()
    for line in read_sample(name).splitlines():
        row = json.loads(line)
        is_session = row.pop("table") == "session"
        marks += read_opencode_session(row) if is_session else read_opencode_message(row, memory)
    assert memory.skipped == 0
    return marks


def test_claudes_resumed_session_goes_on_in_its_file() -> None:
    """One answer before and one after: each 1,200 new, 15,000 cached, 300 written, 42 output."""
    natives = dedupe_marks(
        "claude", [list(read_claude_usage(read_sample("claude-resume.jsonl"), ReaderState()))]
    )
    assert _count(natives) == [("0886", 2, 2)]
    assert sum_used(natives) == (2400, 30_000, 600, 84, 0)


def test_codexs_resumed_session_goes_on_from_its_total() -> None:
    """The second total is 18,240, of which the first answer's 9,120 counted before it was resumed.

    Each answer 9,000 of which 7,000 cached, 120 output of which 64 reasoning; each is told by two records.
    """
    natives = dedupe_marks(
        "codex", [list(read_codex_usage(read_sample("codex-resume.jsonl"), ReaderState()))]
    )
    assert _count(natives) == [("8364", 2, 2)]
    assert sum_used(natives) == (4000, 14_000, 0, 240, 128)


def test_codexs_compaction_is_an_answer_and_its_empty_count_is_none() -> None:
    """Three answers as above: to the prompt, to be compacted, and to the prompt after it."""
    natives = dedupe_marks(
        "codex", [list(read_codex_usage(read_sample("codex-compact.jsonl"), ReaderState()))]
    )
    assert _count(natives) == [("a10b", 3, 2)]
    assert sum_used(natives) == (6000, 21_000, 0, 360, 192)


def test_geminis_resumed_session_repeats_its_list_not_its_usage() -> None:
    """A second header and a rewritten list stand between two answers of 8,400 of which 4,096 cached.

    4,304 new each; 7 + 57 and 6 + 57 output, 57 of each thoughts.
    """
    natives = dedupe_marks(
        "gemini", [list(read_gemini_usage(read_sample("gemini-resume.jsonl"), ReaderState()))]
    )
    assert _count(natives) == [("0120", 2, 2)]
    assert sum_used(natives) == (8608, 8192, 0, 127, 114)


def test_geminis_copied_session_counts_what_the_copy_added() -> None:
    """It has no fork: who wants one copies the file, and goes on in the copy."""
    whole = read_sample("gemini-resume.jsonl").splitlines(keepends=True)
    resumed = next(place for place, line in enumerate(whole) if place and line.startswith(b'{"sessionId"'))
    before, copy = b"".join(whole[:resumed]), b"".join(whole)
    files = [list(read_gemini_usage(data, ReaderState())) for data in (before, copy)]
    for order in (files, files[::-1]):
        natives = dedupe_marks("gemini", order)
        assert _count(natives) == [("0120", 2, 2)]
        assert sum_used(natives) == (8608, 8192, 0, 127, 114)


def test_geminis_compression_neither_loses_nor_repeats_usage() -> None:
    """The list is written anew without the two answers it sums up. All three counted, three prompts.

    8,400 + 8,800 + 9,200 less three times 4,096 cached; 1,619 + 1,093 + 5 output and three times 57 thoughts.
    """
    natives = dedupe_marks(
        "gemini", [list(read_gemini_usage(read_sample("gemini-compress.jsonl"), ReaderState()))]
    )
    assert _count(natives) == [("0fe0", 3, 3)]
    assert sum_used(natives) == (14_112, 12_288, 0, 2888, 171)


def test_opencodes_compaction_is_an_answer_of_its_session() -> None:
    """5,304 + 5,704 + 5,704 + 6,104 new and 1 + 1 + 6 + 5 output: the third answer is the summary.

    The program's own row of the session says the same: 22,816 and 13, with 16,384 cached.
    """
    natives = dedupe_marks("opencode", [_read_rows("opencode-compaction.jsonl")])
    assert _count(natives) == [("QVtT", 4, 4)]
    assert sum_used(natives) == (22_816, 16_384, 0, 13, 0)


def test_opencodes_recorded_fork_adds_nothing_until_it_answers() -> None:
    """The fork's one answer is its parent's. Twice 5,304 new and 4,096 cached; 4 + 6 output."""
    natives = dedupe_marks("opencode", [_read_rows("opencode-fork.jsonl")])
    assert sorted(_count(natives)) == [("PtHg", 1, 1), ("j141", 1, 1)]
    assert sum_used(natives) == (10_608, 8192, 0, 10, 0)


def test_opencodes_resumed_session_is_more_rows_of_one_session() -> None:
    """Read before and after it was resumed, the first rows come back unchanged and count once."""
    marks = _read_rows("opencode-compaction.jsonl")
    before = dedupe_marks("opencode", [marks[:5]])
    assert (_count(before), sum_used(before)) == ([("QVtT", 2, 2)], (11_008, 8192, 0, 2, 0))
    after = dedupe_marks("opencode", [marks[:5], marks])
    assert (_count(after), sum_used(after)) == ([("QVtT", 4, 4)], (22_816, 16_384, 0, 13, 0))
