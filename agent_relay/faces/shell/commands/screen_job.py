"""An agent's own screen, wished while it works without one: it opens when the turn ends."""

import asyncio
import threading
from functools import partial

from agent_relay.faces.shell.aside import tell_loop
from agent_relay.faces.shell.commands.face import Act, ShellFace
from agent_relay.faces.shell.jobs import Ask

LABEL = "its own screen opens"


class ScreenJob:
    """`act` has the terminal; what waits is not sent before it is over."""

    label = LABEL

    def __init__(self, shell: ShellFace, act: Act) -> None:
        self._shell = shell
        self._act = act
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()

    def run(self, ask: Ask) -> str:
        """Nothing to show, once the screen was left."""
        del ask
        tell_loop(self._loop, partial(self._shell.do_soon, self._open))
        self._over.wait()
        return ""

    async def _open(self, shell: ShellFace, rest: str) -> None:
        try:
            if not self._over.is_set():
                await self._act(shell, rest)
        finally:
            self._over.set()

    def cancel(self, ask: Ask) -> None:
        """It opens no more."""
        del ask
        self._over.set()
