"""Hand the environment of an attached terminal to the next daemon, which can get it nowhere else."""

import os

from agent_relay.domain.errors import RelayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_relay.client.connection import Connection

_ANSWER_S = 10.0


def bring_environment(
    connection: "Connection",
    session: str,
    *,
    environ: "Mapping[str, str] | None" = None,
    size: tuple[int, int] = (24, 80),
) -> None:
    """Give the daemon `environ`, else this process's, for the session's next agent if it has no better one.

    `size` is the terminal's rows and columns. A refusal of the daemon is ignored: the next request
    reports the reason.
    """
    given = dict(os.environ if environ is None else environ)
    rows, cols = size
    try:
        connection.request(
            "session.environment", limit_s=_ANSWER_S, session=session, env=given, rows=rows, cols=cols
        )
    except RelayError:
        return
