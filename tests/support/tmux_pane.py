"""A user's terminal inside tmux: what its one pane shows, and keys sent to it."""

import re
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from tests.support.real_terminal import LIMIT_S, WaitedError

if TYPE_CHECKING:
    from tests.support.real import World

LOOK_S = 0.05
"""Twenty looks a second, on a machine that has time for them."""


class TmuxPane:
    """One program in the only pane of a tmux server of its own; use as a context manager."""

    def __init__(self, world: "World", argv: list[str], *, size: tuple[int, int]) -> None:
        self._tmux = [*world.prefix, "tmux", "-S", f"{world.root}/tmux", "-f", "/dev/null"]
        self._env = world.env()
        rows, cols = size
        # The status line would take a row of the size that was asked for. One command: a server without
        # a session ends as soon as nobody is connected, and whoever comes just then fails.
        set_up = ("start-server", ";", "set-option", "-g", "status", "off", ";", "new-session", "-d")
        self._run(*set_up, "-x", f"{cols}", "-y", f"{rows}", "-c", world.project, *argv)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._tmux, "kill-server"], env=self._env, capture_output=True, check=False)

    @property
    def rows(self) -> list[str]:
        """Every row the pane shows now, the lowest last."""
        return self._run("capture-pane", "-p").split("\n")[:-1]

    @property
    def screen(self) -> str:
        """What the pane shows now."""
        return "\n".join(self.rows)

    def read(self, form: str) -> str:
        """What tmux says of the pane in this form of its own."""
        return self._run("display-message", "-p", form).strip()

    def send(self, text: str) -> None:
        """Type `text`."""
        self._run("send-keys", "-l", "--", text)

    def press(self, key: str) -> None:
        """Press a key by tmux's name for it."""
        self._run("send-keys", key)

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Return as soon as `holds()`; raise `WaitedError` with the screen when that takes too long."""
        end = time.monotonic() + LIMIT_S
        while not holds():
            if time.monotonic() > end:
                raise WaitedError(f"waited {LIMIT_S} s for {what}; the screen:\n{self.screen}")
            time.sleep(LOOK_S)

    def wait_for(self, pattern: str) -> None:
        """Return as soon as the pane matches `pattern`."""
        self.wait_until(lambda: re.search(pattern, self.screen) is not None, f"/{pattern}/")

    def wait_still(self, times: int = 10) -> None:
        """Return once it showed the same for so many looks."""
        shown: list[str] = []

        def is_still() -> bool:
            shown.append(self.screen)
            return len(shown) >= times and len(set(shown[-times:])) == 1

        self.wait_until(is_still, "the screen to be still")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
