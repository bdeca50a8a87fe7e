"""Decide which effects a daemon must repeat for a session it finds after a crash."""

from datetime import datetime, timedelta

from agent_relay.domain.effects import NoteRest, PublishPacket, SpawnLeg, StopLeg
from agent_relay.domain.events.session import LegEnded, SessionEnded
from agent_relay.domain.events.work import HandoffConfirmed, PacketDelivered, PredecessorStopped, TurnEnded
from agent_relay.domain.inputs import LegGone, Restarted
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import Handoff, Leg, Session, Step, Turn
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import replace
from agent_relay.session import handoffs
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.limits.usage_limits import turn_ended
from agent_relay.session.requests import await_turn_end, roll_back_first
from agent_relay.session.rests import find_wake
from agent_relay.session.transitions import find_spent
from agent_relay.session.turns import lifecycle as turns

_BEFORE_IT_WORKS = frozenset(Step) - {Step.DELIVERED}
_NEW = timedelta(minutes=1)
"""The age of a limit from which on a resting session's daemon has noted it, or its user has cleared it."""
_UNASKED = "the daemon was killed before an agent was asked"


def restarted(session: Session, world: DecisionContext, news: Restarted) -> Outcome:
    """Decide what to do next, given the journal and whether the newest leg's holder lives.

    Every effect returned may have been performed before; performing it again changes nothing.
    """
    return Outcome((), _note_again(session, world.now)).then(_take_up(session, world, news))


def _note_again(session: Session, now: datetime) -> tuple[NoteRest, ...]:
    """Return the limit that began what is under way: its daemon may have died before the ledger had it.

    Nothing once that is done: a rest the user has cleared since would come back with every new daemon.
    """
    limit, handoff = session.limit, session.handoff
    is_failover = handoff is not None and handoff.reason == "rate_limit" and not find_spent(session, handoff)
    if handoff is not None and handoff.rolls_back and limit is not None:
        # A rollback that waited for its turn's end begins at the limit that prevented that.
        is_failover = limit.at <= handoff.began_at < limit.at + _NEW
    is_given_way = is_failover and handoff is not None and handoff.step in _BEFORE_IT_WORKS
    if limit is None:
        return ()
    is_new = session.state is State.RESTING and handoff is None and timedelta(0) <= now - limit.at < _NEW
    if not (session.state is State.LIMITED or is_given_way or is_new):
        return ()
    until = parse_moment(limit.until)
    return (NoteRest(limit.agent, limit.scope, until, limit.text, model=limit.model),)


def _take_up(session: Session, world: DecisionContext, news: Restarted) -> Outcome:  # noqa: PLR0911 - one arm a state
    handoff, leg = session.handoff, session.living_leg
    if leg is not None and not news.leg_lives and not (handoff and handoff.step is Step.SPAWNING):
        return _leg_was_lost(session, leg, news, world)
    if session.due is not None and handoff is None and session.state in {*LIVE, State.RESTING, State.LIMITED}:
        request = session.request
        is_its = request is not None and request.closes == session.due.id
        own = replace(world, handoff_id=request.id) if request is not None and is_its else world
        rolled = handoffs.try_roll_back(session, session.due, own, why=session.due.why)
        if isinstance(rolled, Outcome):
            return rolled
    match session.state:
        case State.LIMITED:
            return _give_way(session, world)
        case State.STOPPING:
            return Outcome((), (StopLeg(leg.id),)) if leg else _end(session, world)
        case State.RESTING:
            return _go_on_resting(session, leg, world)
        case _:
            if handoff is not None:
                return _go_on(session, handoff, world)
            if leg is not None and not leg.child_pid:
                return Outcome((), (SpawnLeg(leg.id),))
            if leg is None and _is_unasked(session):
                return _go_on_beginning(session, session.open_turn, world)
            ready = leg is not None and session.state is State.READY
            given = handoffs.find_delivery(session, leg) if leg and ready else ()
            went_on = Outcome((), (*given, *find_wake(session, world)))
            asked = went_on if given else went_on.then(await_turn_end(session))
            return asked if given else asked.then(turn_ended(session, world))


def _never_began(session: Session, leg: Leg, news: Restarted) -> bool:
    """Return whether the daemon was killed before it started the first leg of the session or turn."""
    if leg.child_pid or session.handoff is not None or session.state is not State.STARTING:
        return False
    turn = session.open_turn
    return not leg.headless or (turn is not None and turn.taken == 1 and not news.leg_began)


def _begin_again(session: Session, leg: Leg) -> Outcome:
    """Start the leg that was never started.

    End it instead if only the client that asked has the user's environment.
    """
    turn = session.open_turn
    if turn is not None and not turn.ends:
        return Outcome((), (SpawnLeg(leg.id),))
    over = (TurnEnded("", "stopped", _UNASKED),) if turn is not None else ()
    return Outcome((LegEnded(leg.id, "unstarted"), *over, SessionEnded(_UNASKED)))


def _is_unasked(session: Session) -> bool:
    """Return whether no agent has been asked yet what the session or its newest turn was begun for."""
    turn = session.open_turn
    return not turn.taken if turn is not None else session.leg is None and session.turn is None


def _go_on_beginning(session: Session, turn: Turn | None, world: DecisionContext) -> Outcome:
    """Begin a turn no agent was asked for yet.

    End it instead if only the client that asked has the user's environment.
    """
    if turn is None:
        return Outcome((SessionEnded(_UNASKED),))
    if not turn.ends:
        return turns.begin_turn(session, turn, world)
    return Outcome((TurnEnded("", "stopped", _UNASKED), SessionEnded(_UNASKED)))


def _end(session: Session, world: DecisionContext) -> Outcome:
    """Return the events that were still missing when the newest leg had ended."""
    turn, handoff = session.turn, session.handoff
    if handoff is not None and session.leg is not None and _has_failed(session, session.leg, handoff):
        # Nobody asked for the end: another successor was about to take the place of this one.
        ended = LegEnded(session.leg.id, session.leg.how, session.leg.status)
        return turns.successor_failed(session, handoff, ended, "", world)
    is_headless = session.leg is not None and session.leg.headless
    if turn is None or not is_headless or not turn.outcome or session.why:
        return Outcome((SessionEnded(session.why),))
    return Outcome((turns.wait_or_end(turn, turn.why),))


def _has_failed(session: Session, leg: Leg, handoff: Handoff) -> bool:
    """Return whether the newest leg, which is over, was a successor that did not work on its packet."""
    if leg.headless or handoff.is_cancelled or handoff.leg != leg.id:
        return False
    return turns.is_failure(session, leg, handoff, LegGone(leg.id, leg.how, leg.status))


def _go_on_resting(session: Session, leg: Leg | None, world: DecisionContext) -> Outcome:
    turn, newest = session.turn, session.leg
    wake = find_wake(session, world)
    over = () if session.is_held else turns.end_resting(session)
    if leg is not None and leg.headless:
        return Outcome(over, (*wake, StopLeg(leg.id)))
    # A person may have gone on since on a screen: then the session is theirs, and rests for them.
    is_turns = turn is not None and turn.ends and turn.outcome == "resting"
    if leg is None and (over or (is_turns and (newest is None or newest.headless))):
        return Outcome((*over, SessionEnded(session.why)))
    return Outcome((), wake)


def _leg_was_lost(session: Session, leg: Leg, news: Restarted, world: DecisionContext) -> Outcome:
    if _never_began(session, leg, news):
        return _begin_again(session, leg)
    if session.state is State.LIMITED:
        legs = (*session.legs[:-1], replace(leg, how="lost"))
        after = _give_way(replace(session, legs=legs), world)
        return Outcome((LegEnded(leg.id, "lost"),)).then(after)
    gone = turns.leg_gone(
        session, LegGone(leg.id, "lost", why=f"{leg.agent} was lost with its holder"), world
    )
    rests = session.state is State.RESTING and not leg.headless
    return gone.then(Outcome((), find_wake(session, world))) if rests else gone


def _give_way(session: Session, world: DecisionContext) -> Outcome:
    rolled = roll_back_first(session, world)
    if rolled.bodies:
        return rolled
    if session.limit is None:
        return handoffs.replace_agent(session, world, reason="rate_limit", why="limit")
    return handoffs.remedy_limit(session, world, session.limit, why="limit")


def _go_on(session: Session, handoff: Handoff, world: DecisionContext) -> Outcome:  # noqa: C901, PLR0911 - one arm a step
    match handoff.step:
        case Step.BEGUN if session.living_leg is not None:
            return Outcome((), (StopLeg(session.living_leg.id),))
        case Step.BEGUN:
            stopped = PredecessorStopped(handoff.id, handoff.from_leg)
            return Outcome((stopped,), (PublishPacket(handoff.id),))
        case Step.STOPPED:
            return Outcome((), (PublishPacket(handoff.id),))
        case _ if handoff.is_cancelled:
            lives = session.living_leg is not None
            return Outcome((), (StopLeg(handoff.leg),)) if lives else handoffs.rest_cancelled(handoff)
        case Step.PUBLISHED:
            return handoffs.start_successor(session, handoff, world, packet=handoff.packet)
        case Step.SPAWNING:
            return Outcome((), (SpawnLeg(handoff.leg),))
        case Step.SPAWNED if session.state is State.READY and session.living_leg is not None:
            return Outcome((), handoffs.find_delivery(session, session.living_leg))
        case Step.SPAWNED if session.living_leg is not None and session.living_leg.headless:
            return Outcome((PacketDelivered(handoff.id, handoff.leg),))
        case Step.DELIVERED if session.living_leg is not None and session.living_leg.headless:
            return NOTHING
        case Step.DELIVERED:
            return Outcome((HandoffConfirmed(handoff.id, handoff.leg),))
        case _:
            return NOTHING
