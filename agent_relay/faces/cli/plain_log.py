"""A terminal's bytes as plain lines, for a log nobody looks at in colour."""

import re
from typing import TextIO

_CONTROL = re.compile(
    r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_].*?\x1b\\|[ -/]*[0-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f]"
)
_LONGEST_CONTROL = 4096


class PlainLog:
    """Takes what a terminal is sent; writes the rows it leaves behind, without control sequences.

    Empty prompts (`>`) and repetitions are left out.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""
        self._last = ""

    def write(self, data: str) -> int:
        """Whole rows go on to the stream; an unfinished one waits."""
        self._held += data
        *rows, self._held = self._held.split("\n")
        for row in rows:
            # What stands before the last carriage return was painted over.
            text = _CONTROL.sub("", row.rstrip("\r").rsplit("\r", 1)[-1]).rstrip()
            if text.strip("> ") and text != self._last:
                self._stream.write(f"  | {text}\n")
                self._last = text
        self._held = self._held[-_LONGEST_CONTROL:]
        return len(data)

    def flush(self) -> None:
        """What was written is out."""
        self._stream.flush()
