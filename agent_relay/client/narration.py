"""A handoff with the outgoing agent's own document, requested while its terminal stays in use."""

import threading

from agent_relay.client.attach.prompt import PendingAnswer
from agent_relay.domain.errors import RelayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.client.connection import Connection

WRITING_LIMIT_S = 1900.0
"""More than any adapter allows its agent: the daemon gives up first."""
_USE_LIMIT_S = 30.0
STARTED = "New session started with handoff context"


class Narration(PendingAnswer):
    """Requests the document and, once it is written, the handoff; without one if the agent cannot write any.

    Nothing is handed over if the document was cancelled, failed or is empty: the user decides then.
    """

    __slots__ = (
        "_connect",
        "_error",
        "_focus",
        "_is_unwanted",
        "_is_writing",
        "_lines",
        "_session",
        "_thread",
    )

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
            self._error = error

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
