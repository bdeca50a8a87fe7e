"""Write the output of one frame at once, and hold back a producer that is ahead of the terminal."""

import errno
import threading
import time
from collections.abc import Callable

FRAME_S = 1 / 30
PROMPT_WRITE_CHARS = 4 << 10
"""Characters of a write above a prompt: more than a person can follow, and keys get their turn in between."""
OUTPUT_WRITE_CHARS = 32 << 10
"""Characters of a write where nobody types."""


class FrameWriter:
    """Passes whole lines to `write`, from a thread of its own; when idle, it does nothing at all.

    One write has about `most` characters, and about twice as many wait for theirs.
    """

    def __init__(self, write: Callable[[str], None], *, most: int = PROMPT_WRITE_CHARS) -> None:
        self._write = write
        self._most = most
        self._changed = threading.Condition()
        self._pending: list[str] = []
        self._size = 0
        self._painter: threading.Thread | None = None
        self._is_over = False
        self._trouble: OSError | None = None

    def add(self, line: str) -> None:
        """Queue the line, after a wait if too much is queued; raise OSError if nothing can be written."""
        with self._changed:
            self._changed.wait_for(lambda: self._size < 2 * self._most or self._trouble is not None)
            if self._trouble is not None:
                raise self._trouble
            self._pending.append(f"{line}\n")
            self._size += len(line) + 1
            if self._painter is None:
                self._is_over = False
                self._painter = threading.Thread(target=self._paint, name="painter", daemon=True)
                self._painter.start()
            self._changed.notify_all()

    def finish(self) -> None:
        """Write everything and end the thread; `add` may be called again later. Raises OSError as it does."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        painter, self._painter = self._painter, None
        if painter is not None:
            painter.join()
        if self._trouble is not None:
            raise self._trouble

    def _paint(self) -> None:
        done = False
        try:
            while piece := self._take():
                self._write(piece)
                time.sleep(FRAME_S)
            done = True
        except OSError as error:
            self._trouble = error
        finally:
            if not done:
                with self._changed:
                    self._trouble = self._trouble or OSError(errno.EIO, "nothing more can be shown")
                    self._changed.notify_all()

    def _take(self) -> str:
        """Return the text of the next frame, as soon as there is some; empty when it is over."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending) or self._is_over)
            count, size = 0, 0
            while count < len(self._pending) and (not count or size < self._most):
                size += len(self._pending[count])
                count += 1
            piece = "".join(self._pending[:count])
            del self._pending[:count]
            self._size -= size
            self._changed.notify_all()
            return piece
