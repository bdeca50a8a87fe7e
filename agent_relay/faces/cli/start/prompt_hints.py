"""Render commands in the answers of the relay prompt as they are typed there.

A separate module from `relay_prompt`, so that attaching does not load it.
"""

from agent_relay.client.attach.prompt import PendingAnswer
from agent_relay.domain.errors import RelayError
from agent_relay.domain.text.hints import render_at_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Answer = tuple[str, ...] | PendingAnswer


def answer_at_key(ask: "Callable[[], Answer]", session: str) -> "Answer":
    """Return what `ask` answers about `session`, with commands as they are typed behind the relay key.

    Raises RelayError as `ask` does, with its commands rendered likewise.
    """
    try:
        found = ask()
    except RelayError as error:
        raise _render_error(error, session) from error
    if isinstance(found, PendingAnswer):
        return _Waiting(found, session)
    return tuple(render_at_key(line, session) for line in found)


class _Waiting(PendingAnswer):
    """Another pending answer, with its lines rendered."""

    __slots__ = ("_inner", "_session")

    def __init__(self, inner: PendingAnswer, session: str) -> None:
        super().__init__(inner.label)
        self._inner = inner
        self._session = session

    def poll(self) -> "Sequence[str] | None":
        """Return the rendered lines once they are there, `None` before.

        Raises RelayError as the other answer does.
        """
        try:
            lines = self._inner.poll()
        except RelayError as error:
            raise _render_error(error, self._session) from error
        # A plain command that was run for this prompt has done so itself, and leaves packets as they are.
        self.label = self._inner.label
        return lines

    def cancel(self) -> None:
        """Ask the other answer to end soon."""
        self._inner.cancel()

    def leave(self) -> None:
        """Stop waiting for the other answer."""
        self._inner.leave()


def _render_error(error: RelayError, session: str) -> RelayError:
    return type(error)(render_at_key(error.sentence, session), hint=render_at_key(error.hint, session))
