"""The terminal of an attached agent, lent to another program while the agent's screen is covered."""

import os
import signal
import termios

from agent_relay.client.terminal import Terminal
from agent_relay.system.holder.restore import RESTORE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def read_modes() -> list[object]:
    """Return the line discipline of standard input, as `LentTerminal` takes it; empty without a terminal."""
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return []


class LentTerminal:
    """Within, a program that is started has the terminal with `modes`, those it had before the agent's.

    Ctrl-C is that program's. Ctrl-Z stops it and this process together, so that the shell which started this
    one has the terminal until `fg`. Raises nothing: where the terminal is gone, its next reader learns that.
    """

    def __init__(self, modes: list[object]) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        self._agents = read_modes()
        keys = (signal.SIGINT, signal.SIGQUIT)
        self._before = {number: signal.signal(number, _leave_to_program) for number in keys}
        self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        Terminal().write(RESTORE)
        _set(self._modes)

    def __exit__(self, *_: object) -> None:
        _set(self._agents)
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _leave_to_program(number: int, frame: "FrameType | None") -> None:
    """Do nothing. A handler, because what is ignored here would be ignored by the program, too."""
    del number, frame


def _set(modes: list[object]) -> None:
    if not modes or not os.isatty(0):
        return
    try:
        termios.tcsetattr(0, termios.TCSAFLUSH, modes)  # type: ignore[arg-type]  # as `tcgetattr` gave them
    except termios.error:
        return
