"""Whom a handoff would go to now, told of every agent of the order."""

from collections.abc import Sequence

from agent_relay.domain.session import Session
from agent_relay.logic.origin import inherit_terms
from agent_relay.logic.outcome import World
from agent_relay.logic.policy import choose, tell_why_not
from agent_relay.logic.succession import note_refused


def build_plan(session: Session, world: World, *, needs: Sequence[str] = ()) -> dict[str, object]:
    """What `/handoff` without a name would do: nothing is changed.

    Keys: session, state, agent, successor (empty for nobody), earliest (ISO 8601 or empty), needs, handoff
    (the one under way, or empty), and agents: one row each with agent, place (from 1), verdict (`at work`,
    `next`, `later` or `skipped`) and why.
    """
    world = note_refused(session, world)
    needs = tuple(needs) or inherit_terms(session).needs
    known, now, zone = world.availability, world.now, world.zone
    choice = choose(session.roster, known, current=session.agent, now=now, zone=zone, needs=needs)
    rows, is_found = [], False
    for place, name in enumerate(session.roster, start=1):
        why = tell_why_not(known.get(name), now=now, zone=zone, needs=needs)
        if name == session.agent:
            verdict, why = "at work", why if session.living_leg is None else ""
        elif why:
            verdict = "skipped"
        elif is_found:
            verdict, why = "later", f"{choice.successor} comes before it"
        else:
            verdict, is_found = "next", True
        rows.append({"agent": name, "place": place, "verdict": verdict, "why": why})
    return {
        "session": session.id,
        "state": session.shown_state.value,
        "agent": session.agent,
        "successor": choice.successor,
        "earliest": choice.earliest.isoformat() if choice.earliest else "",
        "needs": list(needs),
        "handoff": session.handoff.id if session.handoff is not None else "",
        "agents": rows,
    }
