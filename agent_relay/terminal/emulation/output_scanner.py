"""Find in an agent's output the state it announces (OSC 7501) and switches to the alternate screen.

Output may be cut anywhere. Both searches run on every read, even in a flood of output, so their time matters.
"""

import re
from collections.abc import Iterator

_MARK = b"\x1b]7501;"
_MARK_BEGUN = frozenset(_MARK[:end] for end in range(1, len(_MARK)))
# One byte is found six times as fast as the mark, and most reads of an agent's output lack this one.
_RARE = b"]"
_ESCAPE = b"\x1b"
_BEL = b"\x07"
_ST = b"\x1b\\"
# Payloads are `state=...:app=...`, some 30 bytes; anything longer is not one.
_LONGEST = 512
_KEPT = 64


class AgentStateScanner:
    r"""Scans output cut anywhere; `state` is the last payload (`state=working:app=codex`), or empty.

    Source: the OSC 7501 emitted by agents as `ESC ] 7501 ; payload ESC \` or ended by BEL. Text an agent
    prints cannot contain it, because agents strip escape characters from text.
    """

    __slots__ = ("_seen", "_tail", "state")

    def __init__(self) -> None:
        self.state = ""
        self._seen: list[str] = []
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Process the next bytes of output."""
        if self._tail:
            data = self._tail + data
            self._tail = b""
        elif _RARE not in data and not data.endswith(_ESCAPE):
            return
        start = data.find(_MARK)
        while start >= 0:
            end = start + len(_MARK)
            while end < min(len(data), start + _LONGEST + 1) and data[end] not in b"\x07\x1b":
                end += 1
            if end - start > _LONGEST:
                start = data.find(_MARK, start + 1)
                continue
            if data[end : end + 2] in (b"", b"\x1b"):
                self._tail = data[start:]
                return
            if data.startswith((_BEL, _ST), end):
                self._keep(data[start + len(_MARK) : end])
            start = data.find(_MARK, end)
        escape = data.rfind(b"\x1b", -len(_MARK) + 1)
        if escape >= 0 and data[escape:] in _MARK_BEGUN:
            self._tail = data[escape:]

    def _keep(self, payload: bytes) -> None:
        self.state = payload.decode("utf-8", "replace")
        self._seen.append(self.state)
        del self._seen[:-_KEPT]

    def take_seen(self) -> tuple[str, ...]:
        """Return all payloads since the last call, oldest first, at most 64: no short state is missed."""
        seen = tuple(self._seen)
        self._seen.clear()
        return seen


_INTRODUCER = b"\x1b["
# Sought from its first rare byte: with the escape before it the search takes half as long again.
_ENTER = re.compile(rb"\?(?:1049|1047|47)h")
_SWITCH_BEGUN = frozenset(
    switch[:end] for switch in (b"\x1b[?1049h", b"\x1b[?1047h", b"\x1b[?47h") for end in range(1, len(switch))
)
_BEGUN_MAX_BYTES = 7

may_enter = _ENTER.search  # truthy where `find_switches` may find something


def find_switches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of every sequence that enters the alternate screen (DEC modes 47, 1047, 1049)."""
    for switch in _ENTER.finditer(data):
        begin = switch.start() - len(_INTRODUCER)
        if data[max(0, begin) : switch.start()] == _INTRODUCER:
            yield begin, switch.end()


def cut_begun(data: bytes) -> tuple[bytes, bytes]:
    """Split off such a sequence that the end of `data` cuts off; nearly always there is none."""
    escape = data.rfind(b"\x1b", -_BEGUN_MAX_BYTES)
    if escape >= 0 and data[escape:] in _SWITCH_BEGUN:
        return data[:escape], data[escape:]
    return data, b""
