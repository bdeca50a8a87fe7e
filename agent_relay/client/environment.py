"""Hand the environment of an attached terminal to the next daemon, which can get it nowhere else."""

import os

from agent_relay.domain.errors import RelayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Asking(Protocol):
        """The part of a connection to the daemon that is used here."""

        def request(self, op: str, /, *, limit_s: float = ..., **fields: object) -> dict[str, object]:
            """Return the answer to one operation."""


_ANSWER_S = 10.0


def bring_environment(
    connection: "Asking", session: str, *, environ: "Mapping[str, str] | None" = None, **size: int
) -> None:
    """Give the daemon `environ`, else this process's, for the session's next agent if it has no better one.

    `size` is the terminal's, as `rows` and `cols`. A refusal of the daemon is ignored: the next request
    reports the reason.
    """
    given = dict(os.environ if environ is None else environ)
    try:
        connection.request("session.environment", limit_s=_ANSWER_S, session=session, env=given, **size)
    except RelayError:
        return
