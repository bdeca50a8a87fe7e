"""The demo agent with one fault in how it takes its first paste; run as a program, the demo folder first.

    faulty_agent.py FOLDER FAULT [options of the demo agent]

`tools` and `tools-first` are busy for a second, over the paste or before the first prompt, and take no return
meanwhile; `newline` takes a return for a line feed for 0.4 s after a paste; `late-record` works for four
seconds before its record has the prompt; `lose` loses the first prompt whole at its return, and is busy with
its tools then; `again` starts itself anew over its first paste.
"""

import os
import sys
import time

FOLDER, FAULT = sys.argv[1:3]
sys.argv[1:3] = []
sys.path.insert(0, FOLDER)

import agent  # type: ignore[import-not-found]  # noqa: E402 - the demo agent, from the folder just named
import terminal  # type: ignore[import-not-found]  # noqa: E402

TOOLS_S, NEWLINE_S, RECORD_S = 1.0, 0.4, 4.0
ANEW = "FAULTY_AGENT_STARTED_ANEW"
NEVER = float("inf")


class Faulty(terminal.Terminal):  # type: ignore[misc]
    """A terminal with one fault, once."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.is_whole = False
        self.tools_until = NEVER
        self.pasted_at = -NEVER

    def show_state(self, state: str) -> None:
        if FAULT == "tools-first" and state == "ready" and not self.is_whole:
            self.start_tools()
        else:
            super().show_state(state)

    def start_tools(self) -> None:
        """It says that it is busy, and no prompt was given."""
        self.is_whole = True
        self.tools_until = time.monotonic() + TOOLS_S
        super().show_state("busy")

    def _listen(self, timeout: float | None) -> bool:
        if self.tools_until < NEVER:
            left = self.tools_until - time.monotonic()
            if left <= 0:
                self.tools_until = NEVER
                self.show_state("ready")
                return True
            timeout = left
        return bool(super()._listen(timeout))

    def _take(self) -> bool:
        if terminal.PASTE_ENDS in self._input:
            self.pasted_at = time.monotonic()
            if FAULT == "again" and ANEW not in os.environ:
                os.environ[ANEW] = "1"
                self.__exit__(None, None, None)
                # Its own program again, as an agent that was told to trust a folder does.
                os.execv(sys.executable, [sys.executable, __file__, FOLDER, FAULT, *sys.argv[1:]])  # noqa: S606
            if FAULT == "tools" and not self.is_whole:
                goes_on = bool(super()._take())
                self.start_tools()
                return goes_on
        return bool(super()._take())

    def _press(self, key: str) -> bool:
        if key == "\r" and self.tools_until < NEVER:
            return True
        if key == "\r" and FAULT == "lose" and not self.is_whole:
            self._typed = ""
            self.start_tools()
            return True
        if key == "\r" and FAULT == "newline" and time.monotonic() - self.pasted_at < NEWLINE_S:
            self._typed += "\n"
            return True
        return bool(super()._press(key))


class LateStage(agent.Stage):  # type: ignore[misc]
    """It works on a prompt for a while before its record has it."""

    def play(self, prompt: str) -> bool:
        self._terminal.show_state("busy")
        time.sleep(RECORD_S)
        return bool(super().play(prompt))


if __name__ == "__main__":
    agent.Terminal = Faulty
    if FAULT == "late-record":
        agent.Stage = LateStage
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.exit(agent.main())
