"""Run a plain command for a terminal that an agent uses: in a process of its own, its output as lines."""

import os
import subprocess
import sys
import threading

from agent_relay.client.attach.prompt import PendingAnswer
from agent_relay.domain.errors import RelayError
from agent_relay.domain.values.environment import KEY_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_BYTES = 1 << 20
"""More than anybody reads behind a key; a last line says that the rest was left out."""
# Isolated Python runs our own package by its path, whatever folder and variables this terminal has.
_RUN = (
    "import importlib, sys; root = sys.argv.pop(1); sys.path.insert(0, root); "
    "importlib.import_module('agent_relay'); sys.path.remove(root); sys.path.append(root); "
    "from agent_relay.__main__ import main; sys.exit(main())"
)


class PlainCommand(PendingAnswer):
    """`agent-relay` with `words`, run in `folder`, with no terminal and nothing on its standard input.

    Its output is shown behind the relay key of the terminal that has `session`. Escape kills the command. If
    the terminal is needed for something else, the command runs on by itself.
    """

    __slots__ = ("_is_cut", "_is_unwanted", "_output", "_process", "_thread")

    def __init__(self, words: "Sequence[str]", *, folder: str, session: str = "") -> None:
        """Start the command; raise RelayError if it cannot be started."""
        super().__init__(f"agent-relay {words[0]}")
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        if not os.path.exists(__file__):
            raise RelayError(f"agent-relay {words[0]} cannot be started: it is no longer installed in {root}")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _RUN, root, *words],
                cwd=folder,
                env=os.environ | ({KEY_VARIABLE: session} if session else {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise RelayError(f"agent-relay {words[0]} cannot be started: {error}") from error
        self._output = b""
        self._is_cut = self._is_unwanted = False
        self._thread = threading.Thread(target=self._read, name="plain-command", daemon=True)
        self._thread.start()

    def poll(self) -> "tuple[str, ...] | None":
        """Return the command's lines once it is over, `None` before."""
        if self._thread.is_alive():
            return None
        if self._is_unwanted:
            return ("Cancelled",)
        lines = self._output.decode("utf-8", "replace").splitlines()
        return (*lines, "… and more: run it in another terminal") if self._is_cut else tuple(lines)

    def cancel(self) -> None:
        """Kill the command; what it has already requested from the daemon goes on."""
        if self._process.poll() is None:
            self._is_unwanted = True
            self._process.kill()

    def leave(self) -> None:
        """Let the command end by itself; its output is not shown."""

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - asked for above
        with stream:
            self._output = stream.read(LONGEST_BYTES)
            self._is_cut = bool(stream.read(1))
            while stream.read(LONGEST_BYTES):
                continue
        self._process.wait()
