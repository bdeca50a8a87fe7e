"""Find regular expressions whose running time grows faster than the text, by trying them on runs of signs.

Python's engine backtracks: an expression may need time quadratic in the text's length, or worse, and nothing
can interrupt it. The texts it is tried on grow in steps so small that the worst expression ends soon.
"""

import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from string import punctuation

from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.text.plain import compile_late

_CHARACTERS = (*punctuation, " ", "\t", "\n", "\r", "\0", "a", "A", "0", "\u00e9")
_WORDS = ("a ", "0 ", "a\n", "a.", "0:")
_NOT_LITERAL = compile_late(
    r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|[a-zA-Z])|\(\?(?:P<\w+>|[a-zA-Z:=!<>]+)|\{[\d,]*\}"
)
_LITERAL = compile_late(r"[A-Za-z0-9_/-]{2,}")
_MOST_LITERALS = 24
_MOST_MARKS = 10
_END = "\u00a7q"
"""Behind each run: what a pattern asks for next is not there."""


def iterate_probes(source: str) -> Iterator[tuple[str, str]]:
    """Yield the head of a text and the unit to repeat after it; `source` is the pattern's.

    Runs of every kind of character, of the pattern's own words with its own punctuation between them, and of
    characters behind one of those words.
    """
    literals = list(dict.fromkeys(_LITERAL.findall(_NOT_LITERAL.sub(" ", source))))[:_MOST_LITERALS]
    marks = list(dict.fromkeys(mark for mark in source if mark in punctuation))[:_MOST_MARKS]
    yield from (("", unit) for unit in (*_CHARACTERS, *_WORDS))
    for literal in literals:
        yield from (("", literal + mark) for mark in ("", " ", "\n", *marks))
        yield from ((literal, unit) for unit in (" ", "\n", "a", "0", *marks))
        yield from (("", mark + literal + " ") for mark in marks)
        yield from ((f"{literal}{mark}", " ") for mark in marks)
    yield from (("0", unit) for unit in (" ", "\t"))
    yield from (("", one + other) for one in marks for other in marks if one != other)


def render_probe(head: str, unit: str, length: int) -> str:
    """Return about `length` characters of the probe."""
    return head + unit * max(1, length // len(unit)) + _END


Ask = Callable[[str], object]
"""Applies a pattern to a text, as its users do."""
_LENGTHS = (18, 22, 26, 100, 400, 1600)
_LONGER = 4
_MOST_GROWTH = 8
"""Most growth in time for a text four times as long: quadratic time would grow sixteenfold."""
_AT_ONCE_S = 0.05
"""Seconds that no linear expression takes for the longest of these texts."""
_WORTH_A_LOOK_S = 0.002


def find_slow_probe(source: str, ask: Ask) -> str:
    """Return the beginning of a text on which `ask` is slower than linear; empty if none is known.

    `source` is the pattern's source. Takes some 10 ms for a linear pattern.
    """
    for head, unit in iterate_probes(source):
        if _is_slow(head, unit, ask):
            return render_probe(head, unit, 12)
    return ""


def refuse_slow(pattern: str, place: str, *, hint: str, is_whole: bool = True) -> None:
    """Raise ConfigurationError, naming `place`, if the pattern's running time grows faster than the text."""
    probe = _check_once(pattern, is_whole=is_whole)
    if probe:
        why = f"{pattern!r} takes longer than its text is long, such as for {probe!r} repeated"
        raise ConfigurationError(f"{place}: {why}", hint=hint)


def check_pattern(pattern: str, *, is_whole: bool) -> str:
    """Return a slow probe as `find_slow_probe` does: for `fullmatch` with `is_whole`, else for `search`."""
    compiled = re.compile(pattern)
    return find_slow_probe(pattern, compiled.fullmatch if is_whole else compiled.search)


_check_once = lru_cache(maxsize=1024)(check_pattern)


def _is_slow(head: str, unit: str, ask: Ask) -> bool:
    took_s = 0.0
    for length in _LENGTHS:
        text = render_probe(head, unit, length)
        took_s = _measure(text, ask)
        # Garbage may be collected in the middle, which takes as long; it is not done twice.
        if took_s > _AT_ONCE_S and (took_s := _measure(text, ask)) > _AT_ONCE_S:
            return True
    if took_s < _WORTH_A_LOOK_S:
        return False
    short, long = (
        min(_measure(render_probe(head, unit, length), ask) for _ in range(2))
        for length in (_LENGTHS[-1], _LENGTHS[-1] * _LONGER)
    )
    return long > short * _MOST_GROWTH


def _measure(text: str, ask: Ask) -> float:
    """Return how many seconds of processor time `ask` takes."""
    began_s = time.thread_time()
    ask(text)
    return time.thread_time() - began_s
