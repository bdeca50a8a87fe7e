"""Build texts that show whether a regular expression takes more than linear time: runs of one thing."""

from collections.abc import Iterator
from string import punctuation

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
