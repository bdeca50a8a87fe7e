"""What the relay prompt inside an agent's screen does: a line in, lines to show out."""

import os

from agent_relay.domain.errors import WrongUseError
from agent_relay.system.glances import read_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.client.attach_prompt import Waiting
    from agent_relay.client.connection import Connection

ASK_LIMIT_S = 30.0

HELP = (
    "/use AGENT [FOCUS]   hand over to AGENT, which should look at FOCUS first",
    "/handoff [FOCUS]     hand over to the next agent of the order, with a document this one writes first",
    "/status              this session in short",
    "/packet              where the newest packet stands",
    "/stop                end the session and its agent",
    "/detach              leave; the agent keeps working",
)


def obey(
    line: str, *, session: str, folder: str, connect: "Callable[[], Connection]"
) -> "tuple[str, ...] | Waiting":
    """The lines to show for one line typed behind the relay key, or what they will come of.

    None where the agent's screen says it all.

    Raises RelayError where it cannot be done.
    """
    word, _, rest = line.strip().partition(" ")
    if word in {"/status", "/metrics"}:
        return _describe(session, folder)
    if word == "/packet":
        return _find_packet(session, folder)
    if word in {"/help", "/?", "help", "?"}:
        return HELP
    if word == "/use":
        agent, _, focus = rest.strip().partition(" ")
        if not agent:
            raise WrongUseError("/use needs an agent", hint="/use AGENT [FOCUS]")
        return _request(connect, "use", session=session, agent=agent, focus=focus.strip())
    if word == "/handoff":
        from agent_relay.client.narration import Narration

        return Narration(connect, session=session, focus=rest.strip())
    if word == "/stop":
        return _request(connect, "session.stop", session=session)
    raise WrongUseError(f"relay does not know {word[:40]!r}", hint="Try /help")


def _request(connect: "Callable[[], Connection]", op: str, **fields: str) -> tuple[str, ...]:
    with connect() as connection:
        connection.request(op, limit_s=ASK_LIMIT_S, **fields)
    return ()


def _describe(session: str, folder: str) -> tuple[str, ...]:
    view = _read(session, folder)
    lines = [f"session {session}: {view['state']} under {view['agent']}, {view['handoffs']} handoffs"]
    if view["task"]:
        lines.append(f"task: {view['task']}")
    limit = view["limit"]
    if isinstance(limit, dict):
        lines.append(f"last limit: {limit['agent']} ({limit['scope']}) {limit['text']}")
    refused = view["refused"]
    if isinstance(refused, dict):
        lines.append(f"{refused['agent']} is signed out, or its key refused: {refused['text']}")
    if view["offered"]:
        lines.append(f"{view['offered']} can be had again: /use {view['offered']}")
    if view["packet"]:
        lines.append(f"newest packet: {folder}/{view['packet']}")
    return tuple(lines)


def _find_packet(session: str, folder: str) -> tuple[str, ...]:
    view = _read(session, folder)
    return (f"{folder}/{view['packet']}",) if view["packet"] else ("There is no packet yet.",)


def _read(session: str, folder: str) -> "dict[str, object]":
    root = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    return read_session(root, session)
