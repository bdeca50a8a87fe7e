"""Decide which agent rests until when, and what happens at the end of a limit."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent_relay.domain.effects import CancelContinue, Effect, ShowMessage, WakeAt
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.events import session as events
from agent_relay.domain.inputs import Answered, ContinueAnnounced, ResumeAsked
from agent_relay.domain.limits import Rest
from agent_relay.domain.moments import find_end, is_lasting, parse_moment
from agent_relay.domain.session import Session
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import BY_CONFIG, is_later, replace
from agent_relay.session import returns
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.handoffs import begin_handoff, find_fault, replace_agent
from agent_relay.session.requests import find_begun, roll_back_first

TYPE_CHECKING = False

if TYPE_CHECKING:
    from agent_relay.domain.effects import NoteRest

_UNDER_WAY = timedelta(minutes=1)


def find_rest(rests: Sequence[Rest], agent: str, now: datetime) -> Rest | None:
    """Return the rest `agent` is under at `now`, the one that ends last; `None` if it may work.

    A billing limit without a reset lasts until the user says otherwise; any other one without a reset
    is believed for an hour, and `assumed` then. One noted by a clock that was far ahead is over.
    """
    now_resting = [rest for rest in map(_with_end, rests) if rest.agent == agent and _lasts(rest, now)]
    endless = [rest for rest in now_resting if rest.until is None]
    return endless[0] if endless else max(now_resting, key=lambda rest: rest.until or now, default=None)


def add_rest(rests: Sequence[Rest], new: Rest, now: datetime) -> tuple[Rest, ...]:
    """Return the ledger with `new`, which replaces what was known of the same agent, model and scope.

    Rests that are over are dropped.
    """
    key = (new.agent, new.model, new.scope)
    kept = [
        rest for rest in rests if (rest.agent, rest.model, rest.scope) != key and _lasts(_with_end(rest), now)
    ]
    return (*kept, new)


def end_rests(rests: Sequence[Rest], agent: str, model: str, answered_at: datetime) -> tuple[Rest, ...]:
    """Return the ledger after `agent` answered on `model`, empty if that is unknown.

    A request that was under way when the limit was met may still be answered, so that only an answer well
    after it ends a rest. An answer of one model does not end another's limit, and none ends a user's budget.
    """
    return tuple(
        rest
        for rest in rests
        if rest.agent != agent
        or rest.scope == "budget"
        or rest.model not in ("", model)
        or (rest.scope == "model" and not rest.model)
        or answered_at - rest.seen_at < _UNDER_WAY
    )


def include_rest(world: "DecisionContext", note: "NoteRest") -> "DecisionContext":
    """Return `world` with that rest included: it may not be written to the ledger yet."""
    new = Rest(note.agent, note.model, note.scope, note.until, note.evidence, seen_at=world.now)
    before, rest = world.availability.get(note.agent), find_rest((new,), note.agent, world.now)
    if before is None or rest is None:
        return world
    state = replace(before, resting=True, rests_until=rest.until, assumed=rest.assumed, scope=rest.scope)
    return replace(world, availability={**world.availability, note.agent: state})


def drop_rests(rests: Sequence[Rest], agent: str) -> tuple[Rest, ...]:
    """Return the ledger after the user said that `agent` may work again."""
    return tuple(rest for rest in rests if rest.agent != agent)


def _with_end(rest: Rest) -> Rest:
    until, assumed = find_end(rest.until, rest.scope, rest.seen_at)
    return replace(rest, until=until, assumed=assumed)


def _lasts(rest: Rest, now: datetime) -> bool:
    return is_lasting(rest.until, rest.seen_at, now)


CONTINUE_GRACE = timedelta(minutes=5)
"""Longest time for an agent to go on by itself: one sends its prompt 62 to 92 s after the reset."""
_SENDS_WITHIN = timedelta(minutes=2)
_EARLY = timedelta(minutes=1)
"""A countdown names a minute, rounded: its agent may act that much before it."""


def continues(session: Session, news: ContinueAnnounced, world: DecisionContext) -> Outcome:
    """Leave an agent's own timer to it, or cancel it if nothing may go on by itself then.

    The same timer announced again changes nothing; if it is to be cancelled, it is cancelled again.
    """
    leg = session.living_leg
    if leg is None or leg.id != news.leg or leg.headless or session.state not in {*LIVE, State.RESTING}:
        return NOTHING
    known = parse_moment(session.continues_at)
    if news.at is None:
        # At its moment a countdown goes because its agent goes on; before that somebody gave it up.
        is_given_up = known is not None and world.now < known - _EARLY
        return Outcome((events.LegContinues(leg.id),), _find_next_wake(session)) if is_given_up else NOTHING
    if news.at == known:
        return NOTHING if session.agent_may_continue else Outcome((), (CancelContinue(leg.id, news.at),))
    is_left = world.agent_may_continue and not any(
        world.quiet.contains(at, world.zone) for at in (news.at, news.at + _SENDS_WITHIN)
    )
    after: Effect = WakeAt(news.at + CONTINUE_GRACE) if is_left else CancelContinue(leg.id, news.at)
    seen = events.LegContinues(leg.id, news.at.isoformat(), is_left)
    return Outcome((seen,), (after, *((ShowMessage(leg.id),) if session.state is State.RESTING else ())))


def _find_next_wake(session: Session) -> tuple[Effect, ...]:
    """Return the first reset a resting session waits for; nothing if that is unknown."""
    at = parse_moment(session.rested_until) if session.state is State.RESTING else None
    return (WakeAt(at),) if at is not None else ()


def find_check_moment(session: Session) -> datetime | None:
    """Return when relay checks whether an agent went on by itself; `None` if none is to."""
    at = parse_moment(session.continues_at)
    return at + CONTINUE_GRACE if at is not None and session.agent_may_continue else None


def is_left_to_agent(session: Session, now: datetime, *, is_back: bool) -> bool:
    """Return whether, at `now`, an agent that announced that it goes on by itself is left to do so.

    Before its own reset has come, another agent may be available sooner.
    """
    at, check = parse_moment(session.continues_at), find_check_moment(session)
    if at is None or check is None or session.living_leg is None:
        return False
    return now < check and (is_back or now >= at)


def is_agreed(session: Session, world: DecisionContext) -> bool:
    """Return whether the user agreed that work goes on by itself: for this once, or always."""
    return world.resume_at_reset or session.agreed


def seen_while_resting(session: Session, leg: str, state: str, world: DecisionContext) -> Outcome:
    """End the rest if the agent works at the moment it named: it went on by itself."""
    at, living = parse_moment(session.continues_at), session.living_leg
    if session.state is not State.RESTING or at is None or state != State.BUSY:
        return NOTHING
    if living is None or living.id != leg:
        return NOTHING
    if world.now < at - _EARLY:
        return NOTHING
    return Outcome((events.SessionWoke(f"{living.agent} went on by itself"), events.LegBusy(leg)))


def resume_wished(session: Session, wish: ResumeAsked) -> Outcome:
    """Journal whether the person agreed to go on at the reset; raise WrongUseError if none is known."""
    _check_resting(session)
    if not session.rested_until:
        raise WrongUseError(
            "no reset is known, so there is nothing to wait for", hint="See: agent-relay limits"
        )
    if wish.agreed == session.agreed:
        return NOTHING
    return Outcome((events.ResumeAgreed(wish.agreed),))


def go_on_asked(session: Session, world: DecisionContext) -> Outcome:
    """Continue now: begin the rollback that waits, or a handoff to an agent that is available.

    Raises NobodyAvailableError if none is.
    """
    if not is_offered(session):
        _check_resting(session)
    rolled = roll_back_first(session, world)
    if rolled.bodies:
        return rolled
    name, skipped = find_back(session, world)
    if not name:
        why = "; ".join(skipped) or "the order names no agent"
        raise NobodyAvailableError(f"cannot go on ({why})")
    begun = begin_handoff(session, name, "rate_limit", world, why="asked for", skipped=skipped)
    if not begun.bodies:
        raise NobodyAvailableError(f"cannot go on ({find_fault(name, world)})")
    return begun


def find_back(session: Session, world: DecisionContext) -> tuple[str, tuple[str, ...]]:
    """Return who can go on after a rest, and why others cannot; the name is empty if nobody can.

    The agent of a rollback that waits comes first, then the agent at work.
    """
    rolled = find_begun(roll_back_first(session, world))
    if rolled is not None:
        return rolled.to_agent, ()
    if is_offered(session):
        return session.agent, ()
    order = tuple(dict.fromkeys((session.agent, *session.roster)))
    choice = world.choose(order)
    return choice.successor, choice.skipped


def is_offered(session: Session) -> bool:
    """Return whether the agent at work waits at its prompt to be told that it may go on after its rest."""
    return session.state is State.READY and session.offer == session.agent


def _check_resting(session: Session) -> None:
    if session.state is not State.RESTING or session.is_held or session.open_turn is not None:
        raise WrongUseError(f"session {session.id} is not resting", hint="See: agent-relay status")


def reset_passed(session: Session, world: DecisionContext) -> Outcome:
    """Continue a resting session; offer a working one its preferred agent, once for each reset."""
    if session.is_held:
        return NOTHING
    if session.state is State.RESTING:
        return _rest_is_over(session, world)
    return returns.reset_passed(session, world)


def answered(session: Session, answered: Answered, now: datetime) -> Outcome:
    """End the rest and the refusal of an agent that answers again, whatever the ledger says.

    Sources report at different speeds: an answer from before the refusal or the limit does not end it.
    """
    living, refusal = session.living_leg, session.refusal
    if living is None or living.id != answered.leg:
        return NOTHING
    bodies: tuple[events.Body, ...] = ()
    if refusal is not None and (answered.at is None or is_later(answered.at, refusal.at, now)):
        bodies = (events.LegAnswered(living.id),)
    limit = session.limit
    is_over = limit is None or answered.at is None or is_later(answered.at, limit.at, now)
    if session.state is State.RESTING and is_over:
        bodies = (*bodies, events.SessionWoke(f"{living.agent} answers again"))
    return Outcome(bodies)


def _rest_is_over(session: Session, world: DecisionContext) -> Outcome:
    """Act on the first reset of all, which need not be that of the agent at work.

    An agent that is to go on unattended is handed its own work: left at its prompt it would wait there.
    """
    state = world.availability.get(session.agent)
    is_back = state is None or not state.resting
    check = find_check_moment(session)
    if check is not None and is_left_to_agent(session, world.now, is_back=is_back):
        return Outcome((), (WakeAt(check),))
    opens = world.quiet.find_next_allowed(world.now, world.zone)
    if not is_agreed(session, world) or opens is None:
        return _offer(session, world, is_back=is_back)
    reset = parse_moment(session.rested_until)
    due = max(opens, reset + world.reset_grace) if reset is not None and reset <= world.now else opens
    if due > world.now:
        return Outcome((), (WakeAt(due),))
    why = "the first reset has passed"
    begun = roll_back_first(session, world)
    if not begun.bodies and is_back and state is not None and state.installed and state.signed_in:
        begun = begin_handoff(session, session.agent, "rate_limit", world, why=why)
    elif not begun.bodies:
        begun = replace_agent(session, world, reason="rate_limit", why=why)
    return _go_on_unasked(session, world, begun, is_back=is_back)


def _go_on_unasked(session: Session, world: DecisionContext, begun: Outcome, *, is_back: bool) -> Outcome:
    """Begin that handoff, its consent journalled before; offer it if its agent was limited again at once."""
    first = find_begun(begun)
    agent = first.to_agent if first is not None else ""
    again = returns.find_unasked_again(session, agent, world.now) if agent else None
    if again is not None:
        why = returns.tell_often(agent)
        return _offer(session, world, is_back=is_back, why=why).then(Outcome((), (WakeAt(again),)))
    consent, by = ("always", BY_CONFIG) if world.resume_at_reset else ("once", session.agreed_by)
    used = (events.ConsentUsed(agent, consent, session.rested_until, by.user, by.via),) if agent else ()
    return Outcome(used).then(begun)


def _offer(session: Session, world: DecisionContext, *, is_back: bool, why: str = "") -> Outcome:
    """Name the available agent, once; an agent that waits at its prompt counts as at work again.

    `why` is why nobody goes on unasked although that was agreed to. If another agent's reset came first, the
    reset of the agent at work is still waited for.
    """
    living, (name, _) = session.living_leg, find_back(session, world)
    # An agent that gave up is not back at work while its rollback waits for the person's word.
    is_back = is_back and not roll_back_first(session, world).bodies
    say = (ShowMessage(living.id),) if living is not None and not living.headless else ()
    if living is not None and is_back:
        return Outcome((events.SessionWoke(why or "its limit has reset", offers=name == session.agent),), say)
    offered = (
        Outcome((events.ReturnOffered(name, why=why),), say) if name and name != session.offer else NOTHING
    )
    state = world.availability.get(session.agent)
    until = state.rests_until if living is not None and state is not None else None
    return offered.then(Outcome((), (WakeAt(until),) if until is not None and until > world.now else ()))


def find_wake(session: Session, world: DecisionContext) -> tuple[Effect, ...]:
    """Return the resets a session still waits for, so that a new daemon waits for them again."""
    first = session.rested_until if session.state is State.RESTING else ""
    own = [limit.until for limit in session.limits]
    # Where a damaged journal holds something else, whoever rests looks again at once.
    moments = {max(parse_moment(until) or world.now, world.now) for until in (first, *own) if until}
    # What was said to return at the turn's end may be due already.
    moments |= {world.now} if session.returns and session.handoff is None else set()
    check = find_check_moment(session) if session.state is State.RESTING else None
    moments |= {max(check, world.now)} if check is not None else set()
    return tuple(WakeAt(moment) for moment in sorted(moments))
