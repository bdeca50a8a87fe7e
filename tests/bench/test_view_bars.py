"""A turn's view beside rich laying out the same words at once, in one run; and what it holds meanwhile."""

import io
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from rich.console import Console
from rich.markdown import Markdown

from agent_relay.faces.render.turn_view import TurnView
from tests.bench.usage import ROOT

pytestmark = pytest.mark.size("bench")

LINES = 10_000
PIECE = 2_000
PROSE = "It **subtracts** in `calc.py`,\nwhich the test does not see.\n\n- one thing\n- another thing\n\n"
CODE = "```python\ndef add(a, b):\n    return a + b\n```\n\n"
WORDS = {
    "plain lines": "a line of output as tools print it, 57 characters of it\n" * LINES,
    "paragraphs and lists": PROSE * (LINES // 6),
    "short code": CODE * (LINES // 5),
    "one long code": "```python\n" + "    return a + b\n" * LINES + "```\n",
}


def _show(text: str, write: Callable[[str], None]) -> float:
    """Processor time of this thread for all of it, in the pieces a stream comes in."""
    view = TurnView(write, columns=lambda: 100, is_colour=True)
    begin = time.thread_time()
    for at in range(0, len(text), PIECE):
        view.show({"type": "text", "text": text[at : at + PIECE], "more": True})
    spent = time.thread_time() - begin
    view.end()
    return spent


def _lay_out_at_once(text: str) -> float:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    begin = time.thread_time()
    console.print(Markdown(text))
    return time.thread_time() - begin


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", WORDS)
def test_ten_thousand_lines_cost_little_more_than_laid_out_at_once(what: str) -> None:
    """Streaming must not lay out what it has shown again and again."""
    text = WORDS[what]
    _show(CODE, lambda _: None)
    writes: list[tuple[float, int]] = []
    ours = _show(text, lambda piece: writes.append((time.perf_counter(), len(piece))))
    theirs = _lay_out_at_once(text)
    gaps = [after[0] - before[0] for before, after in pairwise(writes)] or [0.0]
    sys.stdout.write(
        f"{what}: {ours / text.count(chr(10)) * 1e6:.0f} us a line, {ours / theirs:.2f} of rich at once; "
        f"{len(writes)} writes, the largest {max(size for _, size in writes):,} characters, "
        f"the longest gap {max(gaps) * 1e3:.0f} ms\n"
    )
    assert ours <= theirs * 2


@pytest.mark.timeout(300)
def test_memory_does_not_grow_with_what_an_agent_says() -> None:
    """A block and a quarter of a megabyte on its way to the terminal, whatever comes."""
    code = (
        "import sys\n"
        "from tests.support.peak import read_peak_mb\n"
        "from tests.bench.test_view_bars import CODE, PROSE\n"
        "from agent_relay.faces.render.turn_view import TurnView\n"
        "view = TurnView(lambda _: None, columns=lambda: 100, is_colour=True)\n"
        "for number in range(int(sys.argv[1])):\n"
        "    view.show({'type': 'text', 'text': PROSE + CODE, 'more': True})\n"
        "    view.show({'type': 'tool', 'name': 'Bash', 'call': str(number), 'input': 'x' * 3000})\n"
        "    view.show({'type': 'thought', 'text': 'hm ' * 100})\n"
        "    view.show({'type': 'text', 'text': 'word ' * 3000, 'more': True})\n"
        "view.end()\n"
        "print(read_peak_mb())\n"
    )
    peaks = []
    for times in (50, 1000):
        done = subprocess.run(
            [sys.executable, "-c", code, str(times)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        peaks.append(float(done.stdout))
    sys.stdout.write(f"peak {peaks[0]:.0f} MB for 1 MB of events, {peaks[1]:.0f} MB for 20 MB\n")
    assert peaks[1] - peaks[0] <= 8
