"""The session made free for a turn without a screen: its agent may still have one, left by a detach."""

import threading
import time
from collections.abc import Callable

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.shell.conversation import Conversation

_ENDING_LIMIT_S = 60.0
_LOOK_S = 1.0
_OVER = frozenset(("ended", "gone", ""))
_WAITS = frozenset(("ready", "resting", "stopping"))


def make_room(
    conversation: Conversation,
    connect: Callable[[], Connection],
    tell: Callable[[str], None],
    unwanted: threading.Event,
) -> None:
    """Nobody is at work in the session; an agent that waits at its own screen has left it politely.

    One that works there is waited for, which `tell` is told. For a thread. Raises WrongUseError where the
    session has another turn, or when `unwanted` is set.
    """
    view = conversation.look()
    if not view or view["state"] in _OVER:
        return
    with connect() as connection:
        connection.subscribe()
        place = _find_place(connection, conversation.session)
        while place["leg"] and place["state"] not in _WAITS:
            tell(f"{place['agent']} works on its own screen (/attach shows it)")
            if unwanted.is_set():
                raise WrongUseError(f"{place['agent']} is at work on its own screen", hint="See it: /attach")
            _listen(connection)
            place = _find_place(connection, conversation.session)
        if place["headless"] is True:
            raise WrongUseError(f"{place['agent']} works on another turn of this session", hint="/resume")
        if place["leg"] or place["state"] == "stopping":
            _end(connection, conversation.session)


def _end(connection: Connection, session: str) -> None:
    connection.request("session.stop", session=session)
    deadline = time.monotonic() + _ENDING_LIMIT_S
    while _find_place(connection, session)["state"] not in _OVER:
        if time.monotonic() > deadline:
            raise RelayError("the agent has not left its screen yet", hint="Enter tries again")
        _listen(connection)


def _listen(connection: Connection) -> None:
    """Something has changed, or a moment has passed."""
    for _ in connection.notices(limit_s=_LOOK_S):
        return


def _find_place(connection: Connection, session: str) -> dict[str, object]:
    try:
        return connection.request("where", session=session)
    except WrongUseError:
        # No daemon has it at work.
        return {"state": "ended", "agent": "", "leg": "", "headless": False}
