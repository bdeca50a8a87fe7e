"""How a session passes from one leg to the next: choosing, beginning, going on after a failure."""

from dataclasses import replace

from agent_relay.domain.effect import (
    DeliverPacket,
    DeliverTask,
    Effect,
    LegGone,
    Published,
    PublishPacket,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.event import (
    Body,
    HandoffBegun,
    HandoffFailed,
    LegEnded,
    LegStarting,
    PacketPublished,
    PredecessorStopped,
    SessionEnded,
    SessionRested,
)
from agent_relay.domain.session import Handoff, Leg, Limit, Session, State, Step
from agent_relay.logic.outcome import NOTHING, Outcome, World
from agent_relay.logic.policy import choose


def begin_leg(session: Session, agent: str, world: World, *, resumes: bool = False) -> Outcome:
    """The first leg of a session, or the next one of a session at rest or ended, without a handoff."""
    native_id = find_native_id(session, agent) if resumes else ""
    body = LegStarting(
        world.leg_id,
        agent,
        session.generation + 1,
        native_id=native_id or world.native_ids.get(agent, ""),
        resumes=bool(native_id),
    )
    return Outcome((body,), (SpawnLeg(world.leg_id),))


def find_native_id(session: Session, agent: str) -> str:
    """The native session id of the agent's last leg here that got as far as a prompt; empty for none."""
    for leg in reversed(session.legs):
        if leg.agent == agent and leg.was_busy and leg.native_id:
            return leg.native_id
    return ""


def is_current(session: Session, handoff: str, *steps: Step) -> bool:
    """Whether `handoff` is the one under way and stands at one of these steps."""
    return session.handoff is not None and session.handoff.id == handoff and session.handoff.step in steps


def begin_handoff(
    session: Session,
    to_agent: str,
    reason: str,
    world: World,
    *,
    why: str,
    focus: str = "",
    skipped: tuple[str, ...] = (),
    model: str = "",
) -> Outcome:
    """A handoff to `to_agent`, whose predecessor is stopped first; one still under way is given up."""
    leg = session.leg
    if leg is None:
        return NOTHING
    given_up: tuple[Body, ...] = ()
    if session.handoff is not None:
        given_up = (HandoffFailed(session.handoff.id, session.handoff.step, why),)
    begun = HandoffBegun(
        world.handoff_id,
        leg.id,
        leg.agent,
        to_agent,
        reason,
        why=why,
        focus=focus,
        skipped=skipped,
        model=model,
    )
    if leg.is_over:
        stopped = PredecessorStopped(world.handoff_id, leg.id)
        return Outcome((*given_up, begun, stopped), (PublishPacket(world.handoff_id),))
    return Outcome((*given_up, begun), (StopLeg(leg.id),))


def note_refused(session: Session, world: World) -> World:
    """The world in which whoever was refused in this session, and did not answer since, is not signed in."""
    known = dict(world.availability)
    for name in {found.agent for found in session.refused} & known.keys():
        known[name] = replace(known[name], signed_in=False)
    return replace(world, availability=known)


def remedy_limit(session: Session, world: World, limit: Limit, *, why: str) -> Outcome:
    """The same agent goes on with its fallback model where only its model is limited, else somebody else.

    A fallback is tried once: one that is limited itself, or does not start, gives way to the next agent.
    """
    fallback = world.fallback_models.get(session.agent, "")
    spent = {limit.model, *(leg.model for leg in session.legs[-1:])}
    is_open = limit.scope == "model" and limit.agent == session.agent and session.agent not in session.tried
    if fallback and is_open and fallback not in spent:
        return begin_handoff(session, session.agent, "rate_limit", world, why=why, model=fallback)
    return replace_agent(session, world, reason="rate_limit", why=why)


def replace_agent(session: Session, world: World, *, reason: str, why: str) -> Outcome:
    """A handoff to whom the policy picks, or rest where nobody can take over.

    An agent that just failed to take over is asked once more before the others: it is not giving way.
    """
    failing = session.tried[-1:]
    current = "" if session.agent in failing else session.agent
    roster = tuple(dict.fromkeys((*failing, *session.roster)))
    choice = choose(
        roster, world.availability, current=current, tried=session.tried, now=world.now, zone=world.zone
    )
    if choice.successor:
        return begin_handoff(session, choice.successor, reason, world, why=why, skipped=choice.skipped)
    given_up: tuple[Body, ...] = ()
    if session.handoff is not None:
        given_up = (HandoffFailed(session.handoff.id, session.handoff.step, why),)
    until = choice.earliest
    rested = SessionRested(why, until.isoformat() if until else "", choice.skipped)
    return Outcome((*given_up, rested), (WakeAt(until),) if until else ())


def leg_gone(session: Session, gone: LegGone, world: World) -> Outcome:
    """What the end of the newest leg means: the next step of a handoff, or the end of the session."""
    leg = session.living_leg
    if leg is None or leg.id != gone.leg:
        return NOTHING
    handoff = session.handoff
    ended = LegEnded(leg.id, "stopped" if session.state is State.HANDING_OFF else gone.how, gone.status)
    if handoff is not None and handoff.step is Step.BEGUN:
        stopped = PredecessorStopped(handoff.id, leg.id)
        return Outcome((ended, stopped), (PublishPacket(handoff.id),))
    if handoff is not None and handoff.leg == leg.id and not leg.was_ready:
        return _successor_failed(session, handoff, ended, gone, world)
    if session.state is State.RESTING:
        return Outcome((ended,))
    return Outcome((ended, SessionEnded(gone.why or f"{leg.agent} {ended.how}")))


def _successor_failed(
    session: Session, handoff: Handoff, ended: LegEnded, gone: LegGone, world: World
) -> Outcome:
    """The successor ended before it took a prompt: the next of the roster takes its place."""
    why = gone.why or f"{handoff.to_agent} ended before it was ready"
    failed = HandoffFailed(handoff.id, handoff.step, why)
    tried = (*session.tried, handoff.to_agent)
    legs = tuple(
        replace(leg, how=ended.how, status=ended.status) if leg.id == ended.leg else leg
        for leg in session.legs
    )
    after = replace(session, handoff=None, tried=tried, legs=legs, state=State.LIMITED)
    return Outcome((ended, failed)).then(replace_agent(after, world, reason="failure", why=why))


def published(session: Session, done: Published, world: World) -> Outcome:
    """The packet is visible: the successor is named in the journal before it is started."""
    handoff = session.handoff
    if handoff is None or not is_current(session, done.handoff, Step.STOPPED):
        return NOTHING
    packet = PacketPublished(
        done.handoff,
        done.packet,
        done.sequence,
        handoff.to_agent,
        done.json_path,
        done.text_path,
        done.fingerprint,
    )
    return Outcome((packet,)).then(start_successor(session, handoff, world, packet=done.packet))


def start_successor(session: Session, handoff: Handoff, world: World, *, packet: str) -> Outcome:
    """The leg of the handoff under way, journalled under its id so that it can only start once."""
    native_id = find_native_id(session, handoff.to_agent)
    starting = LegStarting(
        world.leg_id,
        handoff.to_agent,
        session.generation + 1,
        native_id=native_id or world.native_ids.get(handoff.to_agent, ""),
        handoff=handoff.id,
        packet=packet,
        resumes=bool(native_id),
        model=handoff.model,
    )
    return Outcome((starting,), (SpawnLeg(world.leg_id),))


def find_delivery(session: Session, leg: Leg) -> tuple[Effect, ...]:
    """What a leg that has become ready is still to be given: its packet, or the session's task."""
    handoff = session.handoff
    if handoff is not None:
        waits = handoff.leg == leg.id and handoff.step is Step.SPAWNED
        return (DeliverPacket(handoff.id, leg.id),) if waits else ()
    if session.task and leg.generation == 1 and not leg.was_busy:
        return (DeliverTask(leg.id),)
    return ()
