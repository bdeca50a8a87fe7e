"""Print the agents' output above the prompt, whole lines at a time."""

import asyncio
import errno
import os
import select
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from prompt_toolkit.application import get_app_or_none

from agent_relay.faces.shell._background import settle

Result = TypeVar("Result")


class Scrollback:
    """The terminal above the prompt; `loop` is the one that draws the prompt."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: int = 1) -> None:
        self._loop = loop
        self._target = target

    def write(self, lines: str) -> None:
        """Print the lines; for other threads than the loop's. Raise OSError if the terminal is gone."""
        self.work(partial(self.paint, lines))

    def work(self, job: Callable[[], Result]) -> Result:
        """Have the loop do `job` between two keys and return its result; beside the loop it would delay keys.

        For other threads than the loop's; raises what `job` raises, OSError if the loop is closed.
        """
        done: Future[Result] = Future()
        try:
            self._loop.call_soon_threadsafe(settle, done, job)
        except RuntimeError:
            raise OSError(errno.EIO, "the shell is over") from None
        return done.result()

    def paint(self, lines: str) -> None:
        """Print all of the lines, the prompt below them. Raise OSError if there is no terminal."""
        app = get_app_or_none()
        is_drawn = app is not None and app.is_running
        if app is not None and is_drawn:
            # Not in_terminal, which gives the keys away meanwhile: what is typed then would be echoed.
            app.renderer.erase()
        try:
            data = lines.replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-8", "backslashreplace")
            while data:
                data = data[self._write_some(data) :]
        finally:
            if app is not None and is_drawn:
                app.renderer.reset()
                app.render_counter += 1
                # At once, not with the next turn of the loop: the prompt must not flicker.
                app.renderer.render(app, app.layout)

    def _write_some(self, data: bytes) -> int:
        """Write to the terminal; return how many bytes it took."""
        try:
            return os.write(self._target, data)
        except BlockingIOError:
            # A program that had the terminal before has left it so that it refuses instead of waiting.
            select.select([], [self._target], [])
            return 0
