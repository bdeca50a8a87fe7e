"""Decide each step of a handoff: choose, begin, publish the packet, start the successor, deliver.

If a step fails, decide who takes over instead: the rollback agent, the next one of the order, or nobody.
A packet that cannot be written loses neither the agent nor what was achieved.
"""

from msgspec.structs import asdict

from agent_relay.domain import effects
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.inputs import Delivered, DeliverFailed, Published, PublishFailed, TaskGiven
from agent_relay.domain.session import Handoff, Lane, Leg, Limit, Session, Step, Terms
from agent_relay.domain.state import State
from agent_relay.domain.text.plain import render_count
from agent_relay.domain.values import replace
from agent_relay.session.decision import NOTHING, Choice, DecisionContext, Outcome, find_standby
from agent_relay.session.transitions import build_rollback_terms, find_parent, inherit_terms

HEADLESS = "headless"
"""The capability of every agent whose adapter says how it works on a turn without a screen."""


def begin_leg(
    session: Session, agent: str, world: DecisionContext, *, resumes: bool = False, instead: str = ""
) -> Outcome:
    """Begin the first leg of a session, or the next one of a resting or ended one, without a handoff.

    `instead` is why the agent that was asked for the turn cannot take it.
    """
    native_id = find_native_id(session, agent) if resumes else ""
    body = events.LegStarting(
        world.leg_id,
        agent,
        session.generation + 1,
        native_id=native_id or world.native_ids.get(agent, ""),
        resumes=bool(native_id),
        headless=session.open_turn is not None,
        effort=world.efforts.get(agent, ""),
        instead=instead,
        **asdict(world.owner),
    )
    return Outcome((body,), (effects.SpawnLeg(world.leg_id),))


def find_native_id(session: Session, agent: str) -> str:
    """Return the native session id of the conversation that the agent resumes here; empty for none."""
    return find_lane(session, agent).native_id


def find_lane(session: Session, agent: str) -> Lane:
    """Return the conversation that the agent resumes here, that of its last leg that took a prompt.

    A conversation that was handed over because its context was full is not continued.
    """
    known = (*session.done, *((session.handoff,) if session.handoff else ()))
    full = {handoff.from_leg for handoff in known if handoff.reason == "context"}
    own = [leg for leg in session.legs if leg.agent == agent]
    for leg in reversed(own):
        if leg.was_busy and leg.native_id:
            return (
                Lane("", "its context was full")
                if leg.id in full
                else Lane(leg.native_id, "it worked here before")
            )
    if any(leg.was_busy for leg in own):
        return Lane("", "the id of its conversation here is unknown")
    return Lane("", "it took no prompt here before" if own else "it had no conversation here")


def is_current(session: Session, handoff: str, *steps: Step) -> bool:
    """Return whether `handoff` is under way, not cancelled, and at one of these steps."""
    known = session.handoff
    return known is not None and known.id == handoff and known.step in steps and not known.is_cancelled


def find_fault(agent: str, world: DecisionContext) -> str:
    """Return why the agent could not be started although it is installed; empty for nothing."""
    known = world.availability.get(agent)
    return known.fault if known is not None else ""


def begin_handoff(
    session: Session,
    to_agent: str,
    reason: str,
    world: DecisionContext,
    *,
    why: str,
    focus: str = "",
    skipped: tuple[str, ...] = (),
    model: str = "",
    terms: Terms | None = None,
    rolls_back: str = "",
    digest: bool = False,
) -> Outcome:
    """Begin a handoff to `to_agent`: stop the predecessor first, give up a handoff still under way.

    Without `terms`, those still expected are passed on. Returns nothing if the predecessor lives and
    `to_agent` could not be started: no agent is stopped for a successor that cannot come.
    """
    leg = session.leg
    if leg is None or (not leg.is_over and find_fault(to_agent, world)):
        return NOTHING
    left = session.handoff
    given_up = (work.HandoffFailed(left.id, left.step, why),) if left is not None else ()
    parent = find_parent(session)
    begun = work.HandoffBegun(
        world.handoff_id,
        leg.id,
        leg.agent,
        to_agent,
        reason,
        why=why,
        focus=focus,
        skipped=skipped,
        model=model,
        parent=parent.id if parent is not None else "",
        depth=parent.depth + 1 if parent is not None else 1,
        rolls_back=rolls_back,
        digest=digest,
        **asdict(inherit_terms(session) if terms is None else terms),
    )
    if leg.is_over:
        stopped = work.PredecessorStopped(world.handoff_id, leg.id)
        return Outcome((*given_up, begun, stopped), (effects.PublishPacket(world.handoff_id),))
    return Outcome((*given_up, begun), (effects.StopLeg(leg.id),))


def note_refused(session: Session, world: DecisionContext) -> DecisionContext:
    """Return `world` with agents refused in this session, and silent since, marked as not signed in."""
    known = dict(world.availability)
    for name in {found.agent for found in session.refused} & known.keys():
        known[name] = replace(known[name], signed_in=False)
    return replace(world, availability=known)


def remedy_limit(session: Session, world: DecisionContext, limit: Limit, *, why: str) -> Outcome:
    """Go on with the agent's fallback model if only its model is limited, else with another agent.

    A fallback is tried once: one that is limited itself, or does not start, gives way to the next agent.
    """
    fallback = world.fallback_models.get(session.agent, "")
    spent = {limit.model, *(leg.model for leg in session.legs[-1:])}
    is_open = limit.scope == "model" and limit.agent == session.agent and session.agent not in session.tried
    turn = session.open_turn
    is_open = is_open and (turn is None or not turn.is_spent)
    if fallback and is_open and fallback not in spent and not find_fault(session.agent, world):
        return begin_handoff(session, session.agent, "rate_limit", world, why=why, model=fallback)
    return replace_agent(session, world, reason="rate_limit", why=why)


def replace_agent(session: Session, world: DecisionContext, *, reason: str, why: str) -> Outcome:
    """Hand over to the agent the policy picks, or rest if none can take over.

    An agent that just failed to take over is tried once more before the others: it is not giving way. Then
    the rollback agent of the handoff that failed is tried before the others.
    """
    turn = session.open_turn
    if turn is not None and turn.is_spent:
        known = world.availability.get(session.agent)
        spent = f"this turn may take no more than {render_count(turn.most, 'leg')}"
        until, assumed = (known.rests_until, known.assumed) if known is not None else (None, False)
        return rest(session, why, Choice("", (spent,), until, assumed))
    failing, failed = session.tried[-1:], session.retriable if session.tried else None
    rollback = (failed.terms.rollback,) if failed is not None and failed.terms.rollback else ()
    current = "" if session.agent in failing else session.agent
    others = turn.others if turn is not None else ()
    order = dict.fromkeys((*failing, *rollback, *session.roster))
    choice = world.choose(
        tuple(name for name in order if name not in others),
        current=current,
        tried=session.tried,
        needs=(*inherit_terms(session).needs, *((HEADLESS,) if turn is not None else ())),
    )
    if choice.successor in rollback and choice.successor not in failing and failed is not None:
        return roll_back(session, failed, world, why=why, skipped=choice.skipped)
    if choice.successor:
        return begin_handoff(session, choice.successor, reason, world, why=why, skipped=choice.skipped)
    return rest(session, why, choice)


def rest(session: Session, why: str, choice: Choice) -> Outcome:
    """Rest because no agent can go on, until the first reset if known; give up a handoff under way.

    A headless agent has no screen to rest on: it is stopped, and a session that ends with its turn ends.
    """
    bodies: tuple[events.Body, ...] = ()
    if session.handoff is not None:
        bodies = (work.HandoffFailed(session.handoff.id, session.handoff.step, why),)
    until = choice.earliest
    ends = until.isoformat() if until is not None else ""
    bodies = (*bodies, events.SessionRested(why, ends, choice.skipped, choice.assumed))
    turn, living = session.open_turn, session.living_leg
    # What the agent itself shows says nothing of why nobody takes over.
    say: tuple[effects.Effect, ...] = (
        (effects.ShowMessage(living.id),) if living is not None and not living.headless else ()
    )
    wake = (*say, *((effects.WakeAt(until),) if until else ()))
    stop: tuple[effects.Effect, ...] = (
        (effects.StopLeg(living.id),) if living is not None and living.headless else ()
    )
    if turn is None or not turn.ends:
        return Outcome(bodies, (*wake, *stop))
    over = (work.TurnEnded(session.leg.id if session.leg is not None else "", "resting", why),)
    end = () if living is not None else (events.SessionEnded(why),)
    return Outcome((*bodies, *over, *end), stop)


def roll_back(
    session: Session, failed: Handoff, world: DecisionContext, *, why: str, skipped: tuple[str, ...] = ()
) -> Outcome:
    """Begin a handoff to the rollback agent of `failed`, with what was achieved until now."""
    return begin_handoff(
        session,
        failed.terms.rollback,
        "failure",
        world,
        why=why,
        skipped=skipped,
        terms=build_rollback_terms(failed),
        rolls_back=failed.id,
    )


def try_roll_back(session: Session, failed: Handoff, world: DecisionContext, *, why: str) -> Outcome | str:
    """Hand over to the rollback agent of `failed`, or return `agent: reason` if it cannot take over."""
    name = failed.terms.rollback
    living = session.living_leg
    if living is not None and living.agent == name:
        return f"{name}: at work already"
    headless = (HEADLESS,) if session.open_turn is not None else ()
    choice = world.choose((name,), needs=(*failed.terms.needs, *headless))
    return roll_back(session, failed, world, why=why) if choice.successor else choice.skipped[0]


def rest_cancelled(handoff: Handoff) -> Outcome:
    """End a cancelled handoff: the session rests, with its packet if any, until a person asks."""
    return Outcome((events.SessionRested(f"the handoff to {handoff.to_agent} was cancelled"),))


def published(session: Session, done: Published, world: DecisionContext) -> Outcome:
    """Journal the published packet, and the successor's name before the successor is started."""
    handoff = session.handoff
    if handoff is None or handoff.id != done.handoff or handoff.step is not Step.STOPPED:
        return NOTHING
    packet = work.PacketPublished(
        done.handoff,
        done.packet,
        done.sequence,
        handoff.to_agent,
        done.json_path,
        done.text_path,
        done.fingerprint,
        done.lacks,
    )
    if handoff.is_cancelled:
        return Outcome((packet,)).then(rest_cancelled(handoff))
    return Outcome((packet,)).then(start_successor(session, handoff, world, packet=done.packet))


def start_successor(session: Session, handoff: Handoff, world: DecisionContext, *, packet: str) -> Outcome:
    """Journal and start the leg of the handoff under way; its id makes it start only once.

    A standby of that agent becomes the leg.
    """
    lane = find_lane(session, handoff.to_agent)
    standby = find_standby(session, handoff, lane.native_id, world)
    leg_id = world.leg_id if standby is None else standby.id
    fresh_id = world.native_ids.get(handoff.to_agent, "") if standby is None else standby.native_id
    effort = world.efforts.get(handoff.to_agent, "") if standby is None else standby.effort
    starting = events.LegStarting(
        leg_id,
        handoff.to_agent,
        session.generation + 1,
        native_id=lane.native_id or fresh_id,
        handoff=handoff.id,
        packet=packet,
        resumes=bool(lane.native_id),
        model=handoff.model,
        headless=session.open_turn is not None,
        lane_why=lane.why,
        effort=effort,
        **asdict(world.owner),
    )
    return Outcome((starting,), (effects.SpawnLeg(leg_id),))


def find_delivery(session: Session, leg: Leg) -> tuple[effects.Effect, ...]:
    """Return what a leg that has become ready is still to be given: its packet, or the task."""
    handoff = session.handoff
    if handoff is not None:
        waits = handoff.leg == leg.id and handoff.step is Step.SPAWNED
        return (effects.DeliverPacket(handoff.id, leg.id),) if waits else ()
    if session.task and leg.generation == 1 and not leg.was_given:
        return (effects.DeliverTask(leg.id),)
    return ()


def handle_delivery(
    session: Session, happened: Delivered | DeliverFailed | TaskGiven, world: DecisionContext
) -> Outcome:
    """Return what follows from the end of a delivery; nothing from an outdated report of one."""
    match happened:
        case TaskGiven(leg):
            is_new = any(known.id == leg and not known.was_given for known in session.legs)
            return Outcome((events.TaskDelivered(leg),) if is_new else ())
        case Delivered(handoff, leg) if is_current(session, handoff, Step.SPAWNED):
            works = session.living_leg is not None and session.living_leg.was_busy
            confirmed = (work.HandoffConfirmed(handoff, leg),) if works else ()
            return Outcome((work.PacketDelivered(handoff, leg), *confirmed))
        case DeliverFailed(handoff) if is_current(session, handoff, Step.SPAWNED, Step.DELIVERED):
            return _deliver_failed(session, happened, world)
        case _:
            return NOTHING


def _deliver_failed(session: Session, failed: DeliverFailed, world: DecisionContext) -> Outcome:
    """Leave the successor in charge without its packet, or hand over to its rollback agent."""
    told = Outcome(
        (work.HandoffFailed(failed.handoff, "deliver", failed.why),), (effects.ShowMessage(failed.leg),)
    )
    handoff = session.handoff
    if handoff is None or not handoff.terms.rollback:
        return told
    after = replace(session, handoff=None, retriable=handoff)
    rolled = try_roll_back(after, handoff, world, why=failed.why)
    return told if isinstance(rolled, str) else told.then(rolled)


def publish_failed(
    session: Session, failed: PublishFailed, handoff: Handoff, world: DecisionContext
) -> Outcome:
    """Hand over to the rollback agent, with a packet of its own or in the session it had here.

    Without one the session ends; its journal and its packets stay, and the handoff can be retried. If a leg
    still lives, it stays in charge.
    """
    if session.living_leg is not None:
        return Outcome((work.HandoffFailed(failed.handoff, handoff.step, failed.why),))
    told = Outcome((work.HandoffFailed(failed.handoff, "publish", failed.why),))
    why_not = ""
    if not handoff.is_cancelled:
        after = replace(session, handoff=None, retriable=handoff, state=State.LIMITED)
        rolled = _find_successor(after, handoff, world, why=failed.why)
        if isinstance(rolled, Outcome):
            return told.then(rolled)
        why_not = f" ({rolled})" if rolled else ""
    return told.then(Outcome((events.SessionEnded(f"{failed.why}{why_not}"),)))


def _find_successor(session: Session, handoff: Handoff, world: DecisionContext, *, why: str) -> Outcome | str:
    """Return how the rollback agent takes over, or why it cannot; empty if none was named."""
    if handoff.terms.rollback:
        return try_roll_back(session, handoff, world, why=why)
    if not handoff.rolls_back or not find_native_id(session, handoff.to_agent):
        return ""
    # Its own packet could not be written either: what it knew itself is what is left.
    name = handoff.to_agent
    choice = world.choose((name,))
    if not choice.successor:
        return choice.skipped[0]
    return Outcome((events.SessionRested(why),)).then(begin_leg(session, name, world, resumes=True))


def find_step_left(session: Session) -> Step:
    """Return the step at which the session's retriable handoff goes on: what it reached is kept."""
    handoff, living = session.retriable, session.living_leg
    if handoff is not None and living is not None and living.id == handoff.leg:
        return Step.SPAWNED
    return Step.PUBLISHED if handoff is not None and handoff.packet else Step.STOPPED
