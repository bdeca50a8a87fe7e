"""Where output enters the alternate screen: in every read of a flood, so each search here is counted."""

import re
from collections.abc import Iterator

_INTRODUCER = b"\x1b["
# Sought from its first rare byte: with the escape before it the search takes half as long again.
_ENTER = re.compile(rb"\?(?:1049|1047|47)h")
_BEGUN = frozenset(
    switch[:end] for switch in (b"\x1b[?1049h", b"\x1b[?1047h", b"\x1b[?47h") for end in range(1, len(switch))
)
_BEGUN_MAX_BYTES = 7

may_enter = _ENTER.search  # truthy where `find_switches` may find something


def find_switches(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of every sequence that enters the alternate screen (DEC modes 47, 1047, 1049)."""
    for switch in _ENTER.finditer(data):
        begin = switch.start() - len(_INTRODUCER)
        if data[max(0, begin) : switch.start()] == _INTRODUCER:
            yield begin, switch.end()


def cut_begun(data: bytes) -> tuple[bytes, bytes]:
    """The data without, and only, such a sequence that its end cuts off; nearly always there is none."""
    escape = data.rfind(b"\x1b", -_BEGUN_MAX_BYTES)
    if escape >= 0 and data[escape:] in _BEGUN:
        return data[:escape], data[escape:]
    return data, b""
