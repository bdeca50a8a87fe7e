"""Finds regular expressions that take longer than their text is long, by asking them.

Python's engine goes back and tries again: an expression may need the square of a text's length, or worse, and
nothing can interrupt it. What it is asked grows in steps so small that the worst one ends soon.
"""

import re
import time
from collections.abc import Callable
from functools import lru_cache

from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.text.pattern_probes import iterate_probes, render_probe

Ask = Callable[[str], object]
"""Asks a pattern of a text, as its users do."""
_LENGTHS = (18, 26, 100, 400, 1600)
_LONGER = 4
_MOST_GROWTH = 8
"""Of four times the text: the square of it would be sixteen times the work."""
_AT_ONCE_S = 0.05
"""No linear expression takes so long for the longest of these texts."""
_WORTH_A_LOOK_S = 0.002


def find_slow_probe(source: str, ask: Ask) -> str:
    """Return the beginning of a text for which `ask` takes longer than it is long; empty where none is known.

    `source` is the pattern's. Takes some 10 ms for a pattern that is linear.
    """
    for head, unit in iterate_probes(source):
        if _is_slow(head, unit, ask):
            return render_probe(head, unit, 12)
    return ""


def refuse_slow(pattern: str, place: str, *, hint: str, is_whole: bool = True) -> None:
    """Raise ConfigurationError, naming `place`, for a pattern that takes longer than its text is long."""
    probe = _check_once(pattern, is_whole=is_whole)
    if probe:
        why = f"{pattern!r} takes longer than its text is long, such as for {probe!r} repeated"
        raise ConfigurationError(f"{place}: {why}", hint=hint)


def check_pattern(pattern: str, *, is_whole: bool) -> str:
    """Do the same for a pattern that is searched for, or that must match the whole of a text."""
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
    """Return seconds of processor time."""
    began_s = time.thread_time()
    ask(text)
    return time.thread_time() - began_s
