"""The demo agent's screen and keyboard: lines above, a prompt and a state row below, bracketed paste."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import shutil
import sys
import termios
import time
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|[O].|.)", re.DOTALL)
PARTIAL = re.compile(r"\x1b(?:\[[0-9;?<>=]*|O)?\Z")
COLOURS = {"": "", "red": "\x1b[31m", "green": "\x1b[32m", "dim": "\x1b[2m", "bold": "\x1b[1m"}
HINTS = {"ready": "Enter sends", "busy": "Ctrl-C interrupts", "asking": "y or n"}


class Ended(Exception):  # noqa: N818 - not an error: the program's way out
    """The program ends with `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Interrupted(Exception):  # noqa: N818 - not an error: the user's key
    """The user interrupted the turn."""


class Terminal:
    """What the user sees and types. Without a terminal it reads lines and prints plainly."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = "starting"
        self._typed = ""
        self._waiting: list[str] = []
        self._input = ""
        self._pasting = False
        self._drawn = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_terminal = os.isatty(0)
        self._modes: list[object] = []

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._modes = termios.tcgetattr(0)
            tty.setraw(0)
            self._write(PASTE_ON)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_terminal:
            with contextlib.suppress(OSError, termios.error):
                self._erase()
                self._write(PASTE_OFF)
                termios.tcsetattr(0, termios.TCSADRAIN, self._modes)

    def say(self, text: str, colour: str = "") -> None:
        """`text` stands above the prompt, one row or more for each of its lines."""
        self._erase()
        for line in text.split("\n"):
            plain = "".join(character for character in line if character.isprintable())
            self._write(f"{COLOURS[colour]}{plain}{chr(27) + '[0m' if colour else ''}\r\n")
        self._draw()

    def show_state(self, state: str) -> None:
        """The state row says `state`."""
        self.state = state
        self._erase()
        self._draw()

    def read_prompt(self) -> str | None:
        """The next prompt, typed ahead or typed now; `None` when the user quits."""
        while True:
            if self._waiting:
                return self._waiting.pop(0)
            if not self._listen(None):
                return None

    def ask(self, question: str) -> bool:
        """Whether the user answers the question with y."""
        self.say(question, "bold")
        self.show_state("asking")
        while True:
            while self._typed:
                letter, self._typed = self._typed[0].lower(), self._typed[1:]
                if letter in "yn":
                    self.show_state("busy")
                    return letter == "y"
            if not self._listen(None):
                raise Ended(0)

    def wait(self, seconds: float) -> None:
        """`seconds` pass; what is typed meanwhile is kept, Ctrl-C raises Interrupted."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._listen(left):
                raise Ended(0)

    def _listen(self, timeout: float | None) -> bool:
        """False when the input has ended or the user quits."""
        ready, _, _ = select.select([0], [], [], timeout)
        if not ready:
            return True
        try:
            data = os.read(0, 65536)
        except OSError:
            return False
        if not data:
            return False
        self._input += self._decoder.decode(data)
        goes_on = self._take()
        if self._drawn and self.state != "starting":
            self._erase()
            self._draw()
        return goes_on

    def _take(self) -> bool:
        """Turns what was read into typed text and prompts."""
        while self._input:
            if self._pasting:
                text, end, rest = self._input.partition(PASTE_ENDS)
                if not end:
                    keep = max(len(self._input) - len(PASTE_ENDS) + 1, 0)
                    self._typed, self._input = self._typed + self._input[:keep], self._input[keep:]
                    return True
                self._typed, self._input, self._pasting = self._typed + text, rest, False
                continue
            escape = ESCAPE.match(self._input)
            if escape and not PARTIAL.fullmatch(self._input):
                self._pasting = escape[0] == PASTE_BEGINS
                self._input = self._input[escape.end() :]
            elif self._input.startswith("\x1b"):
                return True
            else:
                key, self._input = self._input[0], self._input[1:]
                if not self._press(key):
                    return False
        return True

    def _press(self, key: str) -> bool:
        if key in "\r\n":
            self._waiting.append(self._typed.replace("\r\n", "\n").replace("\r", "\n"))
            self._typed = ""
        elif key == "\x03":
            if self.state != "ready":
                raise Interrupted
            self._typed = ""
        elif key == "\x04":
            return bool(self._typed) or self.state != "ready"
        elif key in "\x7f\x08":
            self._typed = self._typed[:-1]
        elif key.isprintable():
            self._typed += key
        return True

    def _draw(self) -> None:
        if not self._is_terminal:
            return
        width = max(shutil.get_terminal_size().columns, 20)
        lines = self._typed.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        typed = self._typed if len(lines) == 1 else f"[{len(lines)} lines pasted]"
        row = f"  {self.state} | {self.name} | {HINTS.get(self.state, '')}"[: width - 1]
        plain = "".join(character for character in typed if character.isprintable())
        prompt = f"> {plain[-(width - 4) :]}"
        self._write(f"{prompt}\r\n\x1b[2m{row}\x1b[0m\x1b[A\r\x1b[{len(prompt)}C")
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._write("\r\x1b[J")
            self._drawn = False

    def _write(self, text: str) -> None:
        if not self._is_terminal and text.startswith("\x1b"):
            return
        sys.stdout.write(text)
        sys.stdout.flush()


class Silence:
    """Where there is no screen: nothing is shown, nobody answers, and time passes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def say(self, text: str, colour: str = "") -> None:
        """Nobody sees it."""

    def show_state(self, state: str) -> None:
        """Nobody sees it."""

    def ask(self, question: str) -> bool:
        """No: nobody is there to say yes."""
        return not question

    def wait(self, seconds: float) -> None:
        """`seconds` pass."""
        time.sleep(seconds)
