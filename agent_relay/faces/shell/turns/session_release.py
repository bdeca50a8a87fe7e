"""Free the session for a turn without a screen: its agent may still have one, left by a detach."""

import threading
import time
from collections.abc import Callable

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.faces.shell._conversation import Conversation

_ENDING_LIMIT_S = 60.0
_LOOK_S = 1.0
_DOES = (("on its own screen", "/attach"), ("on another turn of this session", "/resume"))
_OVER = frozenset(("ended", "gone", ""))
_WAITS = frozenset(("ready", "resting", "stopping"))


def free_session(
    conversation: Conversation,
    connect: Callable[[], Connection],
    tell: Callable[[str], None],
    cancelled: threading.Event,
) -> None:
    """Wait until no agent works in the session; end an agent that waits at its own screen politely.

    An agent that works there is waited for, and so is a turn another shell has begun; `tell` is called with
    what is waited for. The agent that has the session then has the next turn, unless one was chosen here. For
    a thread. Raises WrongUseError when `cancelled` is set meanwhile.
    """
    view = conversation.refresh()
    if not view or view["state"] in _OVER:
        conversation.follow(view)
        return
    with connect() as connection:
        connection.subscribe()
        place = _find_place(connection, conversation.session)
        while place["headless"] is True or (place["leg"] and place["state"] not in _WAITS):
            what, see = _DOES[place["headless"] is True]
            tell(f"{place['agent']} works {what} ({see} shows it)")
            if cancelled.is_set():
                raise WrongUseError(f"{place['agent']} is at work {what}", hint=f"See it: {see}")
            _listen(connection)
            place = _find_place(connection, conversation.session)
        conversation.follow(conversation.refresh())
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
    """Wait until something has changed, at most `_LOOK_S`."""
    for _ in connection.notices(limit_s=_LOOK_S):
        return


def _find_place(connection: Connection, session: str) -> dict[str, object]:
    try:
        return connection.request("where", session=session)
    except WrongUseError:
        # No daemon has it at work.
        return {"state": "ended", "agent": "", "leg": "", "headless": False}
