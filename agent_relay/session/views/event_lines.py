"""Put journal events into words: a line for each as it happens, and a session's history in a few."""

from collections import deque
from collections.abc import Iterable
from datetime import tzinfo

from agent_relay.domain.events import session as events
from agent_relay.domain.events import standby, work
from agent_relay.domain.moments import render_moment_text, render_reset_text
from agent_relay.domain.names import BY_HAND
from agent_relay.domain.session import Session, Step
from agent_relay.domain.text.names import name_asker, name_lane, name_limit
from agent_relay.domain.text.plain import clean_text
from agent_relay.session.fold import fold_event, is_limit, is_refusal
from agent_relay.session.transitions import build_limit
from agent_relay.session.views.messages import render_handoff_line, render_limit

_ENDS = {"lost": "was lost", "unstarted": "could not be started"}
_STEPS = {
    Step.BEGUN: "while its predecessor was stopped",
    Step.STOPPED: "while its packet was built",
    Step.PUBLISHED: "before its successor was started",
    Step.SPAWNING: "while its successor was started",
    Step.SPAWNED: "before its successor had its packet",
    Step.DELIVERED: "after its successor had its packet",
}


def name_end(how: str) -> str:
    """Return what follows an agent's name: `was lost`; `exited` and `stopped` need no change."""
    return _ENDS.get(how, how)


def name_step(step: str) -> str:
    """Return when a handoff failed that had come as far as `step`: `while its packet was built`."""
    if step == "deliver":
        return _STEPS[Step.SPAWNED]
    try:
        return _STEPS[Step(step)]
    except ValueError:
        return f"after {step}"


def render_event_line(session: Session, event: events.Event, zone: tzinfo) -> str:
    """Render what happened, empty if a watcher need not know; `session` is the one after it."""
    agent = _name_agent(session, getattr(event.body, "leg", ""))
    return (
        _render_leg(event, agent)
        or _render_checkpoint(event, agent)
        or _render_signal(event, zone)
        or _render_choice(event, agent)
        or _render_standby(event)
        or _render_digest(event)
        or _render_said(event, agent)
        or _render_handoff(session, event)
        or _render_rest(session, event, zone)
        or _render_return(event, zone)
        or _render_session(session, event)
    )


_DETAILS = (
    "agent", "from_agent", "to_agent", "reason", "kind", "scope", "until", "model", "handoff", "step", "how",
    "status", "outcome", "verdict", "decides",
)  # fmt: skip


def list_details(session: Session, event: events.Event) -> dict[str, str]:
    """Return what programs need of an event: codes, names and times, never anybody's words."""
    body = event.body
    found: dict[str, str] = {}
    for name in _DETAILS:
        value = getattr(body, name, "")
        if isinstance(value, bool):
            found[name] = "true" if value else "false"
        elif isinstance(value, (str, int)) and value != "":
            found[name] = str(value)
    leg = getattr(body, "leg", "")
    if leg and "agent" not in found:
        found["agent"] = _name_agent(session, leg)
    return found


def _render_leg(event: events.Event, agent: str) -> str:  # noqa: PLR0911 - one arm an event
    match event.body:
        case events.LegStarting() as body:
            on = f" on {body.model}" if body.model else ""
            how = " in its earlier conversation" if body.resumes else ""
            return f"{body.agent} starts{on}{how}{' without a screen' if body.headless else ''}"
        case events.LegReady():
            return f"{agent} waits for a prompt"
        case events.LegBusy():
            return f"{agent} works"
        case events.LegAsking():
            return f"{agent} asks for an approval"
        case events.LegAnswered():
            return f"{agent} answers again"
        case events.LegEnded(_, how, status):
            return f"{agent} {name_end(how)}{f' with status {status}' if status >= 0 else ''}"
        case work.ContextNoted(_, used, room):
            filled = f"{100 * used // room} % full" if room > 0 else f"{used:,} tokens long"
            return f"the context of {agent} is {filled}"
        case work.ContextCompacting():
            return f"{agent} is asked to compact its context"
        case work.DraftBegun(_, cause):
            return f"{agent} is asked for a handoff document: {cause}"
        case _:
            return ""


def _render_checkpoint(event: events.Event, agent: str) -> str:
    body = event.body
    if not isinstance(body, events.CheckpointMade):
        return ""
    turn = f"turn {body.turns}, " if body.turns else ""
    noted = ", with its note" if body.note else ""
    return f"a checkpoint of {agent} is saved: {turn}changed files: {body.changed}{noted}"


def _render_signal(event: events.Event, zone: tzinfo) -> str:
    body = event.body
    if not isinstance(body, events.SignalSeen):
        return ""
    until = render_moment_text(body.until, event.at, zone)
    ends = f", resets {until}" if until else ""
    # Told apart from what acts: a screen may show anything.
    return f"{_name_signal(body)}{ends}{'' if body.decides else ', not acted on'}"


def _name_signal(body: events.SignalSeen) -> str:
    limit = name_limit(body.scope, body.model, body.text)
    match body.kind:
        case "limit":
            return f"{body.agent} hit {limit}" if body.decides else f"{body.agent} seems to have hit {limit}"
        case "silent-limit":
            return f"{body.agent} hit {limit} and keeps trying"
        case "near-limit":
            return f"{body.agent} is near a limit"
        case "retry":
            return f"{body.agent} tries again by itself"
        case _ if body.scope == "auth":
            return f"{body.agent} is signed out or its key is refused"
        case _:
            return f"{body.agent} got an error from its provider"


def _render_choice(event: events.Event, agent: str) -> str:
    body = event.body
    if isinstance(body, events.NearLimitEnded):
        return f"{agent} is no longer near a limit"
    if not isinstance(body, work.SuccessorChosen):
        return ""
    why = f" ({'; '.join(body.skipped)})" if body.skipped else ""
    return f"at its limit {body.agent or 'no agent'} would take over from {agent}{why}"


def _render_standby(event: events.Event) -> str:
    match event.body:
        case standby.StandbyStarting(_, agent):
            return f"{agent} is started ahead of the limit, unseen"
        case standby.StandbyReady(_, agent):
            return f"{agent} is ready to take over"
        case standby.StandbyDropped(_, agent, why):
            return f"{agent} is not kept ready any more: {why}"
        case standby.StandbyEnded(_, agent, why) if why:
            return f"{agent} is not ready any more: {why}"
        case _:
            return ""


def _render_digest(event: events.Event) -> str:
    body = event.body
    if isinstance(body, work.DigestBegun):
        return f"{body.agent} is asked for a handoff document from the record"
    if not isinstance(body, work.DigestEnded):
        return ""
    if body.outcome == "written":
        return f"{body.agent} wrote a handoff document from the record"
    why = body.why or ("its answer was empty" if body.outcome == "empty" else body.outcome)
    return f"the packet goes out without a document from {body.agent}: {why}"


def _render_said(event: events.Event, agent: str) -> str:
    match event.body:
        case work.HandoffRequested() as body:
            return f"{agent} requests a handoff to {body.to_agent} after this turn"
        case work.HandoffWithdrawn(_, why):
            return f"the requested handoff does not begin{f': {why}' if why else ''}"
        case work.HandoffAccepted():
            return f"handoff accepted by {agent}"
        case events.ContextWished():
            return f"{agent} asks for its context to be compacted"
        case work.AgentNoted():
            return f"{agent} saves a note on its work"
        case _:
            return ""


def _render_handoff(session: Session, event: events.Event) -> str:  # noqa: PLR0911 - one arm an event
    match event.body:
        case work.HandoffBegun() as body:
            reason = body.reason.replace("_", " ")
            return f"handoff from {body.from_agent} to {body.to_agent} begins: {reason}{_name_asker(body)}"
        case work.PacketPublished(text_path=path, lacks=lacks):
            return f"its packet is published: {path}{f' ({lacks})' if lacks else ''}"
        case work.PacketSaved(target=target, text_path=path):
            return f"a packet for {target} is saved: {path}"
        case work.PacketDelivered():
            return "the successor has its packet"
        case work.HandoffConfirmed():
            return f"handoff done: {session.agent} works on it"
        case work.HandoffFailed(_, step, why):
            return f"handoff failed {name_step(step)}: {why}"
        case work.HandoffCancelled() as body:
            return f"handoff cancelled{_name_asker(body)}"
        case work.HandoffRetried() as body:
            return f"handoff tried again{_name_asker(body)}"
        case _:
            return _render_judgement(event)


def _tell_lane(session: Session) -> str:
    """Return how the agent that took over learned what was done before it, to be added to a line."""
    leg = session.leg
    if leg is None or not leg.lane_why:
        return ""
    return f" ({leg.agent} {name_lane(resumes=leg.resumes, why=leg.lane_why)})"


def _render_judgement(event: events.Event) -> str:
    match event.body:
        case work.CriterionChecked(_, _, verdict, _, by):
            return f"a criterion of the handoff is {verdict}{f', says {by}' if by else ''}"
        case work.BlockerNamed(_, kind):
            return f"the handoff's task is blocked: {kind}"
        case work.HandoffClosed(_, verdict) as body:
            return f"handoff judged: {verdict}{_name_asker(body)}"
        case _:
            return ""


def _render_session(session: Session, event: events.Event) -> str:
    match event.body:
        case events.SessionCreated():
            return f"session begins in {session.root}"
        case events.SessionStopping(why):
            return f"session is {why}" if why == BY_HAND else f"session is stopped{f': {why}' if why else ''}"
        case events.SessionEnded(why):
            return f"session ended{f': {why}' if why else ''}"
        case work.TurnBegun(agent):
            return f"a turn for {agent} begins"
        case work.TurnEnded(_, outcome, why, _, refused):
            more = [why, f"not allowed: {', '.join(refused)}" if refused else ""]
            return "the turn is over: " + ", ".join(part for part in (outcome, *more) if part)
        case _:
            return ""


_CONSENTS = {
    "once": "as a person agreed during this rest",
    "always": "by resume_at_reset = true",
    "return": 'by return = "auto"',
}


def _render_rest(session: Session, event: events.Event, zone: tzinfo) -> str:
    match event.body:
        case events.SessionRested(why, until, assumed=assumed):
            ends = render_reset_text(until, event.at, zone, assumed=assumed)
            return f"session rests{f' until {ends}' if ends else ''}: {why}"
        case events.SessionWoke(offers=offers):
            return "its limit has reset; waiting for you to continue" if offers else "session continues"
        case events.ResumeAgreed(agreed) as body:
            plan = "continue" if agreed else "wait for you"
            return f"work will {plan} at the reset{_name_asker(body, ', decided by')}"
        case events.LegContinues(leg, at, allowed) if at:
            when = render_moment_text(at, event.at, zone)
            plan = f"continue by itself{f' at {when}' if when else ''}"
            agent = _name_agent(session, leg)
            return (
                f"{agent} will {plan}" if allowed else f"{agent} planned to {plan}; relay is cancelling that"
            )
        case _:
            return ""


def _render_return(event: events.Event, zone: tzinfo) -> str:
    match event.body:
        case events.ReturnOffered(agent, _, why):
            return f"{agent} is available again{f'; it does not go on by itself: {why}' if why else ''}"
        case events.ReturnPutOff(agent, why, until):
            ends = render_moment_text(until, event.at, zone)
            return f"{agent} does not take over again{f' until {ends}' if ends else ''}: {why}"
        case events.ConsentUsed(agent, consent) as body:
            agreed = _CONSENTS.get(consent, "as was agreed")
            return f"{agent} goes on unasked, {agreed}{_name_asker(body, ':') if body.user else ''}"
        case _:
            return ""


def _name_asker(
    body: work.HandoffBegun
    | work.HandoffCancelled
    | work.HandoffRetried
    | work.HandoffClosed
    | events.ResumeAgreed
    | events.ConsentUsed,
    before: str = ", by",
) -> str:
    """Return who asked for it, with `before` in front, to be added to its line; empty if not known."""
    asker = name_asker(body.user, body.via)
    by = getattr(body, "by", "")
    return f"{before} {', '.join(part for part in (by, asker) if part)}" if by or asker else ""


def _name_agent(session: Session, leg_id: str) -> str:
    return next((leg.agent for leg in session.legs if leg.id == leg_id), "the agent")


_MOST_LINES = 500
_LONGEST = 400
_AS_WATCHED = (
    events.SessionCreated,
    work.HandoffClosed,
    work.HandoffRequested,
    work.HandoffWithdrawn,
    events.ReturnOffered,
    events.ReturnPutOff,
    events.ConsentUsed,
    events.SessionEnded,
    events.SessionRested,
    events.SessionWoke,
)
"""Events that are told in the words of who watches."""


def list_history(journal: Iterable[events.Event], zone: tzinfo) -> list[str]:
    """Return the lines of whole journals, oldest first; times in `zone`.

    `Nov 24, 18:20  claude hit its session limit (resets 21:00)`. Of a long history the newest 500.
    """
    told: deque[tuple[events.Event, str]] = deque(maxlen=_MOST_LINES)
    session: Session | None = None
    for event in journal:
        session = fold_event(session, event)
        line = _render(session, event, zone) if session is not None else ""
        if not line:
            continue
        if session is not None and told and _says_why(session, event, told[-1][0]):
            told.pop()
        told.append((event, " ".join(clean_text(line).split())[:_LONGEST]))
    return [f"{event.at.astimezone(zone):%b %-d, %H:%M}  {line}" for event, line in told]


def _says_why(session: Session, event: events.Event, before: events.Event) -> bool:
    """Return whether the line of `event` names the limit that the line before it reports."""
    is_made = isinstance(event.body, work.HandoffConfirmed) and bool(session.done)
    is_its = (
        is_made and isinstance(before.body, events.SignalSeen) and session.done[-1].reason == "rate_limit"
    )
    return (
        is_its
        and isinstance(before.body, events.SignalSeen)
        and before.body.agent == session.done[-1].from_agent
    )


def _render(session: Session, event: events.Event, zone: tzinfo) -> str:  # noqa: PLR0911 - one arm an event
    """Return what the event means for whoever works in the session; empty if it is no news to them."""
    match event.body:
        case events.SignalSeen() as body if body.decides and is_limit(body):
            return render_limit(build_limit(body, event.at), event.at, zone)
        case events.SignalSeen() as body if is_refusal(body):
            return render_event_line(session, event, zone)
        case work.HandoffConfirmed() if session.done:
            line = render_handoff_line(session, session.done[-1], zone)
            told = line.removeprefix("→ ").replace("Continuing with", "Continued with", 1)
            return f"{told}{_tell_lane(session)}"
        case work.HandoffFailed(_, step, why) if session.retriable is not None:
            return f"the handoff to {session.retriable.to_agent} failed {name_step(step)}: {why}"
        case work.HandoffCancelled() if session.handoff is not None:
            return f"the handoff to {session.handoff.to_agent} was cancelled"
        case work.HandoffRetried() if session.handoff is not None:
            return f"the handoff to {session.handoff.to_agent} was tried again"
        case body if isinstance(body, _AS_WATCHED):
            return render_event_line(session, event, zone)
        case _:
            return ""
