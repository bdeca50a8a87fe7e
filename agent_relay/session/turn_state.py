"""What the journal says of a headless turn; find a turn again by the id of its message."""

from collections.abc import Sequence
from dataclasses import replace

from agent_relay.domain.events.session import Event
from agent_relay.domain.events.turn import ChatBegun, TurnBegun, TurnEnded
from agent_relay.domain.session import Session, Turn


def fold_turn(session: Session, body: TurnBegun | TurnEnded) -> Session:
    """Return the session after one more event about its turns."""
    if isinstance(body, TurnEnded):
        after = end_turn(session, body.outcome, body.why, body.refused)
        if after.turn is None or after.turn is session.turn or not never_began(body):
            return after
        return replace(after, turn=replace(after.turn, never_began=True))
    turn = Turn(body.agent, body.prompt, body.most, body.ends, seat=body.seat, others=body.others)
    return replace(session, turn=turn, why="", failure="", rested_until="", skipped=(), tried=())


def never_began(body: TurnEnded) -> bool:
    """Return whether the turn was given up before any agent was asked."""
    return body.outcome == "stopped" and not body.leg


def end_turn(session: Session, outcome: str, why: str, refused: tuple[str, ...] = ()) -> Session:
    """Return the session with this outcome for its open turn; a turn that has an outcome keeps it."""
    turn = session.open_turn
    if turn is None:
        return session
    return replace(session, turn=replace(turn, outcome=outcome, why=why, refused=refused))


def count_leg(turn: Turn | None, *, is_headless: bool) -> Turn | None:
    """Return the turn with one more leg, if that leg is headless."""
    return replace(turn, taken=turn.taken + 1) if turn is not None and is_headless else turn


def find_turn_by_message(events: Sequence[Event], message: str) -> tuple[int, bool] | None:
    """Return the line number of the newest turn or chat asked for as `message`; `None` for none.

    Also return whether it was given up before any agent was asked, so that asking again asks no agent twice.
    For a chat that is always false: it goes on by asking for its next turn.
    """
    found: tuple[int, bool] | None = None
    is_open = False
    for event in events:
        match event.body:
            case TurnBegun() as body:
                is_open = body.message == message
                found = (event.number, False) if is_open else found
            case ChatBegun() as body if body.message == message:
                found = (event.number, False)
            case TurnEnded() as body if is_open and found is not None and never_began(body):
                found = (found[0], True)
            case _:
                pass
    return found
