"""Wait at the relay prompt for what takes a while: a handoff document, or a plain command's output."""

import os
import subprocess
import sys
import threading

from agent_relay.client.attach.prompt import PendingAnswer
from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import KEY_VARIABLE
from agent_relay.domain.text.hints import render_at_key

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.client.connection import Connection

WRITING_LIMIT_S = 1900.0
"""Longest wait, in seconds: more than any adapter allows its agent, so that the daemon gives up first."""
_USE_LIMIT_S = 30.0
STARTED = "New session started with handoff context"


def render_error(error: RelayError, session: str) -> RelayError:
    """Return the error with its commands as they are typed behind the relay key of `session`."""
    return type(error)(render_at_key(error.sentence, session), hint=render_at_key(error.hint, session))


class Narration(PendingAnswer):
    """Requests the document and, once it is written, the handoff; without one if the agent cannot write any.

    Nothing is handed over if the document was cancelled, failed or is empty: the user decides then.
    """

    def __init__(self, connect: "Callable[[], Connection]", *, session: str, focus: str) -> None:
        super().__init__("the agent writes a handoff document")
        self._connect = connect
        self._session = session
        self._focus = focus
        self._lines: tuple[str, ...] = ()
        self._error: RelayError | None = None
        self._is_unwanted = False
        self._is_writing = True
        self._thread = threading.Thread(target=self._run, name="narration", daemon=True)
        self._thread.start()

    def poll(self) -> "tuple[str, ...] | None":
        """Return the lines to show once it is over, `None` before. Raise RelayError as the daemon did."""
        if self._thread.is_alive():
            if self._is_unwanted:
                self.cancel()
            return None
        if self._error is not None:
            raise self._error
        return self._lines

    def cancel(self) -> None:
        """Cancel the writing of the document; a handoff that has begun goes on."""
        self._is_unwanted = self._is_writing
        if not self._is_unwanted:
            return
        try:
            with self._connect() as connection:
                answer = connection.request("narrate.cancel", session=self._session)
        except RelayError:
            return
        # What was cancelled at once is not being written yet: the next look tries again.
        self._is_unwanted = answer.get("cancelled") is not True

    def _run(self) -> None:
        try:
            self._lines = self._hand_over()
        except RelayError as error:
            self._error = render_error(error, self._session)

    def _hand_over(self) -> tuple[str, ...]:
        with self._connect() as connection:
            told = connection.request(
                "narrate", limit_s=WRITING_LIMIT_S, session=self._session, focus=self._focus
            )
            self._is_writing = False
            if told.get("outcome") not in {"written", "unable"}:
                return (str(told.get("message", "")),)
            connection.request(
                "use", limit_s=_USE_LIMIT_S, session=self._session, agent="", focus=self._focus
            )
        return (STARTED,) if told.get("outcome") == "written" else ()


LONGEST_BYTES = 1 << 20
"""Most bytes shown, more than anybody reads behind a key; a last line says that the rest was left out."""
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
        self._is_truncated = self._is_unwanted = False
        self._thread = threading.Thread(target=self._read, name="plain-command", daemon=True)
        self._thread.start()

    def poll(self) -> "tuple[str, ...] | None":
        """Return the command's lines once it is over, `None` before."""
        if self._thread.is_alive():
            return None
        if self._is_unwanted:
            return ("Cancelled",)
        lines = self._output.decode("utf-8", "replace").splitlines()
        return (*lines, "… and more: run it in another terminal") if self._is_truncated else tuple(lines)

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
            self._is_truncated = bool(stream.read(1))
            while stream.read(LONGEST_BYTES):
                continue
        self._process.wait()
