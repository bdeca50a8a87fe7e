"""A terminal's bytes as plain lines, for a log nobody looks at in colour."""

import re
from collections import deque
from typing import TextIO

_CONTROL = re.compile(
    r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[ -/]*[0-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f]"
)
_BEGIN = re.compile(r"\n|\x1b\[\d{0,5}(?:;1)?H")
"""What a row begins behind: the end of the one above, or the cursor put on its first column."""
_LONGEST_CONTROL = 4096
_RECENT = 100


class PlainLog:
    """Takes what a terminal is sent; writes the rows it leaves behind, without control sequences.

    Empty prompts (`>`) and repetitions are left out, also of rows that are painted again in their place.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""
        self._is_painted = False
        self._recent: deque[str] = deque(maxlen=_RECENT)

    def write(self, data: str) -> int:
        """Whole rows go on to the stream; an unfinished one waits."""
        self._held += data
        at = 0
        for begin in _BEGIN.finditer(self._held):
            self._write_row(self._held[at : begin.start()])
            at, self._is_painted = begin.end(), begin[0] != "\n"
        self._held = self._held[at:][-_LONGEST_CONTROL:]
        return len(data)

    def _write_row(self, row: str) -> None:
        # What stands before the last carriage return was painted over.
        text = _CONTROL.sub("", row.rstrip("\r").rsplit("\r", 1)[-1]).rstrip()
        known = self._recent if self._is_painted else list(self._recent)[-1:]
        if text.strip("> ") and text not in known:
            self._stream.write(f"  | {text}\n")
            self._recent.append(text)

    def flush(self) -> None:
        """What was written is out."""
        self._stream.flush()
