"""The session made free for a turn without a screen: its agent may still have one, left by a detach."""

import time
from collections.abc import Callable

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.shell.conversation import Conversation

_ENDING_LIMIT_S = 60.0
_LOOK_S = 2.0
_OVER = frozenset(("ended", "gone", ""))
_WAITS = frozenset(("ready", "resting", "stopping"))


def make_room(conversation: Conversation, connect: Callable[[], Connection]) -> None:
    """Nobody is at work in the session; an agent that waits at its own screen has left it politely.

    For a thread. Raises WrongUseError where it is not waiting: what it does must not be cut off.
    """
    view = conversation.look()
    if not view or view["state"] in _OVER:
        return
    with connect() as connection:
        place = _find_place(connection, conversation.session)
        agent = place["agent"]
        if place["headless"] is True:
            raise WrongUseError(f"{agent} works on another turn of this session", hint="See it: /resume")
        if not place["leg"] and place["state"] != "stopping":
            return
        if place["state"] not in _WAITS:
            raise WrongUseError(
                f"{agent} is at work on its own screen",
                hint="See it: /attach; Enter sends this once it is done",
            )
        _end(connection, conversation.session)


def _end(connection: Connection, session: str) -> None:
    connection.subscribe()
    connection.request("session.stop", session=session)
    deadline = time.monotonic() + _ENDING_LIMIT_S
    while _find_place(connection, session)["state"] not in _OVER:
        if time.monotonic() > deadline:
            raise RelayError("the agent has not left its screen yet", hint="Enter tries again")
        for _ in connection.notices(limit_s=_LOOK_S):
            break


def _find_place(connection: Connection, session: str) -> dict[str, object]:
    try:
        return connection.request("where", session=session)
    except WrongUseError:
        # No daemon has it at work.
        return {"state": "ended", "agent": "", "leg": "", "headless": False}
