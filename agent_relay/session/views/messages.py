"""The lines a user reads about a session: what happened, who continues, until when an agent rests."""

from collections.abc import Sequence
from datetime import datetime, tzinfo

from agent_relay.domain.limits import Context, ContextWishes, Level, Mark, Spending
from agent_relay.domain.moments import render_moment_text, render_reset, render_reset_text
from agent_relay.domain.names import get_session_folder
from agent_relay.domain.session import (
    Handoff,
    HandoffRequest,
    Leg,
    Limit,
    PreparedSuccessor,
    PutOff,
    Session,
    Step,
)
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.text.names import agent_command, continue_command, name_limit, retry_command
from agent_relay.domain.text.plain import capitalize, quote_reason
from agent_relay.session.decision import Availability
from agent_relay.session.transitions import find_spent, find_worst_budget, is_ended_by_budget

_SAID_LENGTH = 100
_BY_SIGNAL = 128
"""A shell tells an end by a signal as its number above this."""
_IN_ORDER = frozenset({-1, 0, 130, 143})
"""The statuses of an agent that a person or its terminal ended, and of one whose status nobody knows."""
_CANCELLING = {
    Step.BEGUN: "{0.from_agent} is already ending; its packet will still be written.",
    Step.STOPPED: "{0.from_agent} has already ended; its packet will still be written.",
    Step.PUBLISHED: "{0.from_agent} has already ended; its packet is written.",
    Step.SPAWNING: "{0.from_agent} has already ended; its packet is written. {0.to_agent} is being stopped.",
    Step.SPAWNED: "{0.from_agent} has already ended; its packet is written. {0.to_agent} is being stopped.",
    Step.DELIVERED: "{0.to_agent} has its packet.",
}
"""Effect of cancelling at each step: whoever gave way is gone or going."""


_FOLLOWS = {
    ("warn", Mark.WARN): "",
    ("warn", Mark.SPENT): "You decide what happens next",
    ("handoff", Mark.WARN): "When it is used up, another agent takes over",
    ("handoff", Mark.SPENT): "Another agent takes over at the end of this turn",
    ("stop", Mark.WARN): "When it is used up, the session ends",
    ("stop", Mark.SPENT): "The session ends",
}


def render_handoff_line(session: Session, handoff: Handoff, zone: tzinfo) -> str:
    """Render the one line between two agents on the same terminal.

    `→ claude hit its session limit (resets 21:00). Continuing with codex. Packet: <path>`, times in `zone`.
    """
    model = f" on {handoff.model}" if handoff.model else ""
    fresh = "a fresh " if handoff.reason == "context" and handoff.to_agent == handoff.from_agent else ""
    parts = [_render_cause(session, handoff, zone), f"Continuing with {fresh}{handoff.to_agent}{model}."]
    if handoff.text_path:
        parts.append(f"Packet: {session_folder(session)}/{handoff.text_path}")
    if handoff.lacks:
        parts.append(f"({capitalize(handoff.lacks)})")
    return "→ " + " ".join(parts)


def render_rest_line(session: Session, zone: tzinfo) -> str:
    """Render which agent rests until when, and that none can take over; or that the handoff was cancelled."""
    if session.is_held and session.retriable is not None:
        return _render_held(session, session.retriable)
    cause = _render_halt(session, zone)
    assumed = session.reset_assumed
    until = render_reset_text(session.rested_until, session.updated_at, zone, assumed=assumed)
    earliest = f" The first reset is at {until}." if until else ""
    reasons = "; ".join(session.skipped)
    owed = session.retriable
    # Who could not be given it was perhaps kept from it by something that has passed.
    waits = f" Give {owed.to_agent} its packet: {_go_on(session, owed)}" if owed is not None else ""
    return f"→ {cause}. No agent is available{f' ({reasons})' if reasons else ''}.{earliest}{waits}"


def _go_on(session: Session, owed: Handoff) -> str:
    return continue_command(owed.to_agent, session.id)


def render_seat_line(session: Session, zone: tzinfo) -> str:
    """Render which agent rests until when in a chat; the next line says whether the chat goes on."""
    return f"→ {_render_halt(session, zone)}. No agent can take its place."


def _render_halt(session: Session, zone: tzinfo) -> str:
    limit = session.limit
    return (
        render_limit(limit, session.updated_at, zone)
        if limit
        else f"{session.agent or 'The session'} cannot go on"
    )


def _render_held(session: Session, handoff: Handoff) -> str:
    """Render that a handoff was cancelled, where its packet is, and how to go on in either direction."""
    packet = f" Its packet: {session_folder(session)}/{handoff.text_path}." if handoff.text_path else ""
    back = f"or switch back: {continue_command(handoff.from_agent, session.id)}"
    go_on = retry_command(handoff.id)
    return f"→ The handoff to {handoff.to_agent} was cancelled.{packet} Go on: {go_on}, {back}"


def render_intervention(session: Session, handoff_id: str) -> str:
    """Render what follows from what a person just did to the handoff `handoff_id`."""
    current = session.handoff
    begun = (*session.done, *(one for one in (current, session.retriable) if one is not None))
    if all(one.id != handoff_id for one in begun):
        return f"→ Handoff {handoff_id} will not begin; {session.agent} goes on."
    if current is not None and current.id == handoff_id and current.is_cancelled:
        go_on = f"The session will then rest. Go on: {retry_command(current.id)}"
        return f"→ {_CANCELLING[current.step].format(current)} {go_on}"
    if current is not None:
        return f"→ Handoff {current.id} to {current.to_agent} is under way."
    if session.is_held and session.retriable is not None:
        return _render_held(session, session.retriable)
    return f"→ Handoff {handoff_id} is closed."


def render_unmet(handoff_id: str, unmet: Sequence[str], anyway: str) -> str:
    """Render that the handoff stays open because these criteria are unmet, and `anyway`, what can be done."""
    first = f"“{' '.join(unmet[0].split())[:_SAID_LENGTH]}”" if unmet else "a criterion"
    more = f" and {len(unmet) - 1} more" if len(unmet) > 1 else ""
    return f"→ Handoff {handoff_id} stays open: {first}{more} is not met. {anyway}"


def render_sign_in(agent: str, command: str) -> str:
    """Render how to sign in to `agent`: by its own `command`, if that is known."""
    return f"Sign in: {command}" if command else f"Sign in on its own screen: {agent_command(agent)}"


def render_end_line(session: Session, *, sign_in: str = "") -> str:
    """Render why no leg runs any more, and how to go on; `sign_in` is its agent's sign-in command."""
    leg, owed = session.leg, session.retriable
    go_on = continue_command(owed.to_agent if owed is not None else session.agent, session.id)
    if session.failure:
        return f"→ The handoff failed: {session.failure}. Go on: {go_on}"
    if session.refusal is not None:
        how = f" ({sign_in})" if sign_in else ""
        return f"→ {_render_refusal(session.refusal)}. Sign in{how}, then go on: {go_on}"
    if is_ended_by_budget(session):
        return f"→ {capitalize(session.why)}. Go on all the same: {go_on}"
    return _render_leg_end(leg, owed, go_on) if leg is not None else ""


def _render_leg_end(leg: Leg, owed: Handoff | None, go_on: str) -> str:
    """Render how the last leg ended if that was not normal, or its packet is still to be delivered."""
    if leg.how == "stopped":
        return ""
    if owed is not None and not owed.is_cancelled:
        return f"→ {_tell_end(leg)} before it worked on its packet. Give it the packet: {go_on}"
    if leg.how == "lost" or leg.status not in _IN_ORDER:
        return f"→ {_tell_end(leg)}. Go on: {go_on}"
    return ""


def _tell_end(leg: Leg) -> str:
    """Return how an agent's process ended, in a person's words."""
    if leg.how == "lost":
        return f"{leg.agent} was lost"
    if leg.status > _BY_SIGNAL:
        return f"{leg.agent} was ended by signal {leg.status - _BY_SIGNAL}"
    return f"{leg.agent} ended with status {leg.status}" if leg.status > 0 else f"{leg.agent} ended"


def render_refusal_line(refusal: Limit) -> str:
    """Render why the agent gets no answers; only the user can fix it, so no agent takes over by itself."""
    return f"→ {_render_refusal(refusal)}. Sign in there and go on, or hand over: agent-relay relay"


def render_offer_line(session: Session) -> str:
    """Render which agent is available again, and by which command; or that it returns by itself.

    For the agent at work that is its own model, or going on at its prompt; its command in another terminal
    would only attach to it.
    """
    back = f"→ {session.offer} is available again"
    if session.offer == session.agent and session.leg is not None and not session.leg.model:
        anew = f"press the relay key and type /use {session.offer} to hand its work to a new {session.offer}"
        return f"{back}. Type your next prompt to continue, or {anew}"
    if session.offer == session.agent:
        back = f"→ {session.offer} can have its own model again"
        if session.returns:
            return f"{back}, and goes on with it at the end of this turn."
        return f"{back}. To switch back: press the relay key and type /use {session.offer}"
    if session.returns:
        return f"{back}, and takes over at the end of this turn."
    back = f"{back}. It does not take over by itself: {session.held}" if session.held else back
    key = f"press the relay key and type /use {session.offer}"
    return f"{back}. To switch back: {agent_command(session.offer)}, or {key}"


def render_put_off_line(put_off: PutOff, now: datetime, zone: tzinfo) -> str:
    """Render why a preferred agent whose reset has passed does not return yet, and until when."""
    until = render_moment_text(put_off.until, now, zone)
    again = f" until {until}" if until else ""
    return f"→ {put_off.agent} does not take over again{again}: {put_off.why}"


def render_near_line(near: Limit, zone: tzinfo, prepared: PreparedSuccessor | None = None) -> str:
    """Render which limit an agent is near, in its own words, and which agent takes over then."""
    until = render_moment_text(near.until, near.at, zone)
    said = f"{_shorten(near.text.partition(' · ')[0])}{f'; resets {until}' if until else ''}"
    go_on = "It keeps working; to hand over sooner: agent-relay relay"
    if prepared is not None and prepared.agent:
        go_on = f"It keeps working, then {prepared.agent} takes over; to hand over sooner: agent-relay relay"
    elif prepared is not None:
        go_on = f"It keeps working, but no agent could take over ({_shorten('; '.join(prepared.skipped))})"
        go_on = go_on.removesuffix(" ()")
    return f"→ {near.agent} is near {name_limit(near.scope, near.model, near.text)} ({said}). {go_on}"


def render_context_line(session: Session) -> str:
    """Render how full the agent's context is, and what can be done about that."""
    hand_over = "Hand over when it suits you: press the relay key and type /handoff"
    return f"→ The context of {session.agent} is {render_fill(session.context)}. {hand_over}"


def render_wish_line(session: Session) -> str:
    """Render that the agent asked for its context to be compacted, and who does so."""
    if session.context.wish == "ask":
        return f"→ {session.agent} asks for its context to be compacted. If you agree, do so at its prompt"
    return f"→ {session.agent} asked for its context to be compacted; relay does so when its turn is over"


def render_told_context(context: Context, wishes: ContextWishes, *, has_tools: bool) -> str:
    """Render for the agent itself how full its context is, and what follows from that."""
    follows, tool = {
        "handoff": ("Soon the work goes on in a fresh conversation, at the end of a turn", "handoff"),
        "compact": ("Soon it is compacted, at the end of a turn", "compact"),
    }.get(wishes.mode, ("The user has been told, and decides", "compact or handoff"))
    ask = f". Note where your work stands with the tool checkpoint; to ask for it now, use {tool}"
    full = f"Note by agent-relay, not by the user: your context is {render_fill(context)}. "
    return f"{full}{follows}{ask if has_tools else ''}."


def render_fill(context: Context) -> str:
    """Render how full it is: `91 % full (152,000 of 167,000 tokens)`."""
    if not context.room:
        return f"{context.used:,} tokens long"
    percent = int(100 * context.used / context.room)
    return f"{percent} % full ({context.used:,} of {context.room:,} tokens)"


def render_request_line(agent: str, request: HandoffRequest) -> str:
    """Render which handoff the agent at work asked for, when it begins, and how to prevent it."""
    title = f": {_shorten(request.title)}" if request.title else ""
    drop = f"To prevent it: agent-relay handoff cancel {request.id}"
    return f"→ {agent} hands over to {request.to_agent} when its turn is over{title}. {drop}"


def render_spending_line(known: Spending) -> str:
    """Render how much of a budget is used, and what follows."""
    follows = _FOLLOWS.get((known.then, known.mark), "")
    if known.is_done:
        follows = "It was already acted on and will not be again"
    return f"→ {capitalize(known.text)}{f'. {follows}' if follows else ''}"


def render_slow_start(session: Session, agent: str) -> str:
    """Render that `agent`, started a while ago, shows no prompt yet, and what waits for that."""
    handoff = session.handoff
    if handoff is not None and handoff.to_agent == agent:
        return f"→ {agent} is still starting. It gets its packet once it shows its prompt"
    if session.task and len(session.legs) == 1:
        return f"→ {agent} is still starting. It gets its task once it shows its prompt"
    return f"→ {agent} is still starting: waiting for its prompt"


def render_resting_note(agent: str, state: Availability, now: datetime, zone: tzinfo) -> str:
    """Render that an agent was started although it rests, and how to say that it does not."""
    until = state.rests_until
    known_end = render_reset(until, now, zone, assumed=state.assumed) if until is not None else ""
    ends = known_end or "you say otherwise"
    known = f"{agent} rests until {ends}, as far as relay knows; it was started all the same"
    return f"→ {known}. If it does not rest: agent-relay limits clear {agent}"


def render_saved(session: Session, agent: str, path: str) -> str:
    """Render that a packet was made and no agent started, where it is, and which command delivers it."""
    return f"Packet for {agent}: {path}. No agent was started. Give it: {continue_command(agent, session.id)}"


def render_left_out(broken: Sequence[tuple[str, str]]) -> str:
    """Return one line naming the adapters that cannot be used, each with its error; empty for none.

    `broken` are (agent, sentence). An empty agent means a folder that cannot be listed.
    """
    if not broken:
        return ""
    named = "; ".join(f"{agent} ({why})" if agent else why for agent, why in broken)
    return f"→ Left out, because its adapter cannot be used: {named}. See: agent-relay doctor"


def render_newer(agent: str, version: str, newest: str) -> str:
    """Return a note that an agent is newer than the newest version this release was tried with."""
    return f"{agent} {version} is newer than {newest}, the newest version agent-relay was tried with"


def render_message(session: Session, zone: tzinfo, *, sign_in: str = "") -> str:
    """Return what an attached terminal should show now; empty for nothing.

    `sign_in` is the command that signs in to the session's agent, empty if unknown.
    """
    if session.state is State.ENDED:
        return render_end_line(session, sign_in=sign_in)
    if session.refusal is not None and session.state in {*LIVE, State.RESTING}:
        return render_refusal_line(session.refusal)
    if session.state is State.RESTING:
        is_back = bool(session.offer) and not session.is_held
        return render_offer_line(session) if is_back else render_rest_line(session, zone)
    standing = _render_standing(session, zone) if session.handoff is None else ""
    handoff = session.handoff or (session.done[-1] if session.done else None)
    return standing or (render_handoff_line(session, handoff, zone) if handoff else "")


def _render_standing(session: Session, zone: tzinfo) -> str:  # noqa: PLR0911 - one for each thing to know
    """Render what the user should know of the agent at work while no handoff is under way."""
    if session.request is not None:
        return render_request_line(session.agent, session.request)
    if session.context.is_wish_open:
        return render_wish_line(session)
    offer = render_offer_line(session) if session.offer else ""
    warning = _render_warning(session, zone)
    if warning:
        return ". ".join(line for line in (warning, offer.removeprefix("→ ")) if line)
    if session.failure and session.leg is not None and not session.leg.handoff:
        return f"→ The handoff failed: {session.failure}. {session.agent} goes on in its own session"
    if session.failure:
        return f"→ {session.failure}. What it should have read: agent-relay packet show {session.id} --text"
    if offer or not session.put_off:
        return offer
    return render_put_off_line(session.put_off[-1], session.updated_at, zone)


def _render_warning(session: Session, zone: tzinfo) -> str:
    """Render the newest warning about the agent at work: a budget, a near limit, a full context."""
    near, read_at = session.near, session.context.read_at
    spent = find_worst_budget(session, session.updated_at)
    others = [at for at in (near.at if near is not None else None, read_at) if at is not None]
    if spent is not None and spent.at is not None and all(at <= spent.at for at in others):
        return render_spending_line(spent)
    is_full = read_at is not None and not Level.ADVISE.is_above(session.context.level)
    if is_full and (near is None or (read_at is not None and near.at <= read_at)):
        return render_context_line(session)
    return render_near_line(near, zone, session.prepared) if near is not None else ""


def session_folder(session: Session) -> str:
    """Return the folder of the session's journal and packets."""
    return get_session_folder(session.root, session.id)


def _render_cause(session: Session, handoff: Handoff, zone: tzinfo) -> str:
    limit = session.limit
    if spent := find_spent(session, handoff):
        return f"{capitalize(spent)}."
    if handoff.reason == "rate_limit" and limit is not None and limit.agent == handoff.from_agent:
        return f"{render_limit(limit, handoff.began_at, zone)}."
    if handoff.reason == "failure":
        return f"{handoff.why}."
    if handoff.why == "its own model is back":
        return f"{handoff.from_agent} can have its own model again."
    if handoff.reason == "context":
        return f"{handoff.from_agent} hands over: {handoff.why}."
    return f"{handoff.from_agent} hands over."


def _render_refusal(refusal: Limit) -> str:
    said = _shorten(refusal.text)
    return f"{refusal.agent} is signed out or its key is refused{f' ({said})' if said else ''}"


def render_limit(limit: Limit, now: datetime, zone: tzinfo) -> str:
    """Return who hit which limit, and its reset: `claude hit its session limit (resets 21:00)`."""
    until = render_moment_text(limit.until, now, zone)
    named = name_limit(limit.scope, limit.model, limit.text)
    return f"{limit.agent} hit {named}{f' (resets {until})' if until else ''}"


def _shorten(text: str) -> str:
    """Return an agent's words in one line, cut."""
    return quote_reason(text)[:_SAID_LENGTH].rstrip(". ")
