"""Reading usage beside a plain decoder of the same lines, in one run."""

import os
import subprocess
import sys
import time

import msgspec
import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.transcripts.usage_records import list_answers
from agent_relay.usage.native_usage import read_usage
from tests.bench.usage import ROOT
from tests.bench.usage_logs import WRITERS, Totals

pytestmark = pytest.mark.size("bench")

MEGABYTES = 100
SPECS = {
    "claude": Transcript(reader="claude-jsonl", folder="{home}/.claude/projects", pattern="**/*.jsonl"),
    "codex": Transcript(reader="codex-rollout", folder="{home}/.codex/sessions", pattern="**/*.jsonl"),
}


def _decode_all(home: str) -> None:
    for folder, _, names in os.walk(home):
        for name in names:
            if name.endswith(".jsonl"):
                with open(os.path.join(folder, name), "rb") as file:
                    for line in file:
                        msgspec.json.decode(line)


def _look(home: str, agent: str) -> tuple[float, Totals]:
    """Processor time of a look, and what it found."""
    begin, totals = time.process_time(), Totals()
    read = read_usage({agent: SPECS[agent]}, f"{home}/cache/usage.db", home=home, environ={})
    took = time.process_time() - begin
    for native in read.natives:
        for used in list_answers(native.used):
            totals.add((used.input, used.cached, used.cache_write, used.output))
    return took, totals


@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", list(SPECS))
def test_a_first_look_costs_less_than_decoding_and_a_second_next_to_nothing(
    agent: str, tmp_path: os.PathLike[str]
) -> None:
    """People ask again and again what a day has cost; the tokens are those that were written, each once."""
    home = f"{tmp_path}"
    written = WRITERS[agent](home, MEGABYTES << 20, is_odd=True)
    begin = time.process_time()
    _decode_all(home)
    decoding = time.process_time() - begin
    first, found = _look(home, agent)
    second, again = _look(home, agent)
    sys.stdout.write(f"{agent}: first {first / decoding:.2f}, second {second / decoding:.2f} of a decoder\n")
    assert found == again == written
    assert first <= decoding * 1.5
    assert second <= decoding * 0.3


@pytest.mark.timeout(600)
def test_memory_does_not_grow_with_the_logs(tmp_path: os.PathLike[str]) -> None:
    """What is kept of a log is its marks: some 200 bytes an answer, not its text."""
    home = f"{tmp_path}"
    code = (
        "import sys; from tests.bench.test_usage_bars import _look; "
        "from tests.support.peak import read_peak_mb; _look(sys.argv[1], 'claude'); print(read_peak_mb())"
    )
    peaks = []
    for megabytes in (1, MEGABYTES):
        folder = f"{home}/{megabytes}"
        WRITERS["claude"](folder, megabytes << 20, is_odd=False)
        done = subprocess.run(
            [sys.executable, "-c", code, folder], cwd=ROOT, capture_output=True, text=True, check=True
        )
        peaks.append(float(done.stdout))
    sys.stdout.write(f"peak {peaks[0]:.0f} MB for 1 MB, {peaks[1]:.0f} MB for {MEGABYTES} MB\n")
    assert peaks[1] - peaks[0] <= 40
