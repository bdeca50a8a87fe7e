"""Everything under watch at one moment, and the events that lead from one moment to the next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo

from agent_relay.domain.session import Session, State
from agent_relay.domain.watch_event import (
    ContextUsed,
    DaemonTold,
    EventTold,
    PlanStep,
    Rest,
    RestsTold,
    ScreenTold,
    SessionLeft,
    SessionTold,
    TokensUsed,
    WatchEvent,
)
from agent_relay.logic.watching.live import Live, build_context
from agent_relay.logic.watching.story import Story
from agent_relay.logic.wording import render_message

_MOST_TASK = 300
_MOST_ABOUT = 1000
_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class Figures:
    """What the agent's own records say of a session: read now and then, not at every change."""

    tokens: TokensUsed | None = None
    plan: tuple[PlanStep, ...] = ()
    model: str = ""


NO_FIGURES = Figures()


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session: as it is, its screen where it has one, and its newest events, oldest first."""

    now: SessionTold
    screen: ScreenTold | None = None
    told: tuple[EventTold, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """Everything under watch. `problems` are sentences about journals that cannot be read.

    `rests_unknown` is why nobody can tell who rests; empty where `resting` does.
    """

    sessions: tuple[SessionView, ...] = ()
    resting: tuple[Rest, ...] = ()
    is_daemon_here: bool = False
    problems: tuple[str, ...] = field(default=())
    rests_unknown: str = ""


def build_session_view(story: Story, live: Live | None, figures: Figures, zone: tzinfo) -> SessionView | None:
    """One session as it is shown; `None` where its journal does not begin with one."""
    session = story.session
    if session is None or story.since is None:
        return None
    leg = session.leg
    seen = live if live is not None and leg is not None and live.leg == leg.id else None
    now = SessionTold(
        session=session.id,
        root=session.root,
        task=" ".join(session.task.split())[:_MOST_TASK],
        title=story.titled[0],
        state=session.shown_state.value,
        since=story.since.isoformat(),
        agent=session.agent,
        model=(leg.model if leg is not None else "") or (seen.model if seen else "") or figures.model,
        leg=leg.id if leg is not None else "",
        headless=leg is not None and leg.headless,
        turn_since=story.turn_since.isoformat() if story.turn_since is not None else "",
        turn_s=story.turn_s,
        turns=story.turns,
        handoff=session.handoff.step.value if session.handoff is not None else "",
        handoffs=len(session.done),
        limits=story.limits,
        about=_tell_about(session, zone),
        trouble=live.trouble if live is not None else "",
        tokens=figures.tokens,
        windows=seen.windows if seen is not None else (),
        context=(seen.context if seen is not None else None) or _find_context(session),
        plan=figures.plan[:_MOST_STEPS],
    )
    return SessionView(now, _build_screen(session, seen), story.told)


def _tell_about(session: Session, zone: tzinfo) -> str:
    """The session's message; why it ended or waits, where that says nothing."""
    message = render_message(session, zone).removeprefix("→ ")
    is_told = session.state in {State.ENDED, State.STOPPING, State.LIMITED}
    return (message or (session.why if is_told else ""))[:_MOST_ABOUT]


def _find_context(session: Session) -> ContextUsed | None:
    """What the journal last noted, where no daemon knows it better."""
    context = session.context
    return None if context.read_at is None else build_context(context.used, context.room)


def _build_screen(session: Session, live: Live | None) -> ScreenTold | None:
    """The screen without secrets; none once the agent is gone."""
    if live is None or not live.rows or session.living_leg is None:
        return None
    # Most who load this show no screen.
    from agent_relay.logic.redact.text import redact_text

    text = redact_text("\n".join(live.rows)).text
    return ScreenTold(
        session=session.id,
        leg=live.leg,
        title=redact_text(live.title).text,
        rows=tuple(text.split("\n")),
    )


def list_changes(before: View | None, after: View) -> Iterator[WatchEvent]:
    """What is told of `after` to whoever was told of `before`; everything where that is `None`."""
    if before is None or before.is_daemon_here is not after.is_daemon_here:
        yield DaemonTold(state="here" if after.is_daemon_here else "away")
    rests = RestsTold(agents=after.resting, unknown=after.rests_unknown)
    if before is None or rests != RestsTold(agents=before.resting, unknown=before.rests_unknown):
        yield rests
    known: Mapping[str, SessionView] = (
        {} if before is None else {one.now.session: one for one in before.sessions}
    )
    for view in after.sessions:
        yield from _list_session_changes(known.get(view.now.session), view)
    left = known.keys() - {view.now.session for view in after.sessions}
    for session in sorted(left):
        yield SessionLeft(session=session)


def _list_session_changes(before: SessionView | None, after: SessionView) -> Iterator[WatchEvent]:
    last = before.told[-1].number if before is not None and before.told else 0
    yield from (told for told in after.told if told.number > last)
    if before is None or before.now != after.now:
        yield after.now
    if after.screen is not None and (before is None or before.screen != after.screen):
        yield after.screen
