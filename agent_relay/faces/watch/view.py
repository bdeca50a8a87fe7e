"""The watched sessions at one moment, folded from journals, and the events from one moment to the next.

Pure: journals, live facts and figures come in, a `View` comes out. Terminal, JSON, page and exporters all
show this one view.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from agent_relay.domain.events.session import Body, Event
from agent_relay.domain.protocol.timeline import (
    DaysTold,
    TimelineTold,
    TimelineUsage,
    UsageDay,
)
from agent_relay.domain.protocol.watch_events import WatchEvent
from agent_relay.domain.protocol.watch_output import (
    ContextUsed,
    DaemonTold,
    EventTold,
    LiveSession,
    RestingAgent,
    RestsTold,
    ScreenTold,
    SessionLeft,
    SessionTold,
    TokensUsed,
    WatchPlanStep,
    WindowUsed,
    build_context,
)
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.session.fold import fold_event
from agent_relay.session.views.event_lines import list_details, render_event_line
from agent_relay.session.views.messages import render_message
from agent_relay.session.views.summary import find_title

_MOST_TOLD = 200
_MOST_TEXT = 500
_TITLING = ("task", "prompt", "text", "leg", "handoff")
"""The fields of events that make a title."""
_AT_WORK = frozenset({State.BUSY, State.ASKING})


@dataclass(frozen=True, slots=True)
class Story:
    """Summary of a journal as far as it was read; `session` is `None` before the first event.

    `since` is when the session came into its state. `turn_since` is when the turn under way began, `None`
    between two; `turn_s` how long the last one took. `told` are the newest 200 events in words. `titled` is
    the session's title and what `find_title` needs to find it.
    """

    session: Session | None = None
    since: datetime | None = None
    turn_since: datetime | None = None
    turn_s: float | None = None
    turns: int = 0
    limits: int = 0
    told: tuple[EventTold, ...] = ()
    titled: tuple[str, str] = ("", "")


NO_STORY = Story()


def fold_story(story: Story, events: Iterable[Event], zone: tzinfo) -> Story:
    """Return the story after more events. Raise ImpossibleEventError if the journal contradicts itself."""
    told: list[EventTold] = []
    for event in events:
        session = fold_event(story.session, event)
        if session is None:
            continue
        story = _note_title(_note_state(story, session, event.at), event.body)
        text = " ".join(render_event_line(session, event, zone).split())[:_MOST_TEXT]
        if text:
            told.append(
                EventTold(
                    session=session.id,
                    number=event.number,
                    at=event.at.isoformat(),
                    name=event.body.name,
                    text=text,
                    details=list_details(session, event),
                )
            )
    return replace(story, told=(*story.told, *told)[-_MOST_TOLD:]) if told else story


def _note_title(story: Story, body: Body) -> Story:
    if story.titled[0]:
        return story
    data = {key: getattr(body, key, "") for key in _TITLING}
    return replace(story, titled=find_title(story.titled, body.name, data))


def _note_state(story: Story, session: Session, at: datetime) -> Story:
    before = story.session.state if story.session is not None else None
    story = replace(story, session=session)
    if session.state is before:
        return story
    story = replace(story, since=at)
    if session.state is State.LIMITED:
        story = replace(story, limits=story.limits + 1)
    if session.state in _AT_WORK and story.turn_since is None:
        return replace(story, turn_since=at, turns=story.turns + 1)
    if session.state not in _AT_WORK and story.turn_since is not None:
        return replace(story, turn_since=None, turn_s=max(0.0, (at - story.turn_since).total_seconds()))
    return story


_MOST_TASK = 300
_MOST_ABOUT = 1000
_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a session from the agent's own records: read now and then, not at every change.

    `legs` is the usage by leg, `windows` are by agent, as each was last reported in any session.
    """

    tokens: TokensUsed | None = None
    plan: tuple[WatchPlanStep, ...] = ()
    model: str = ""
    legs: Mapping[str, TimelineUsage] = field(default_factory=dict)
    windows: Mapping[str, tuple[WindowUsed, ...]] = field(default_factory=dict)


NO_FIGURES = Figures()


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session: as it is, its screen if it has one, its newest events, oldest first, and its timeline."""

    now: SessionTold
    screen: ScreenTold | None = None
    told: tuple[EventTold, ...] = ()
    timeline: TimelineTold | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Everything under watch. `problems` are sentences about journals that cannot be read.

    `rests_unknown` is why it is unknown who rests; empty if `resting` is known. `days` is the usage by day.
    """

    sessions: tuple[SessionView, ...] = ()
    resting: tuple[RestingAgent, ...] = ()
    is_daemon_here: bool = False
    problems: tuple[str, ...] = field(default=())
    rests_unknown: str = ""
    days: tuple[UsageDay, ...] = ()


def build_session_view(
    story: Story, live: LiveSession | None, figures: Figures, zone: tzinfo
) -> SessionView | None:
    """Build the view of one session; `None` if its journal does not begin with one."""
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
    """Return the session's message; if it has none, why it ended or waits."""
    message = render_message(session, zone).removeprefix("→ ")
    is_told = session.state in {State.ENDED, State.STOPPING, State.LIMITED}
    return (message or (session.why if is_told else ""))[:_MOST_ABOUT]


def _find_context(session: Session) -> ContextUsed | None:
    """Return the context the journal last noted, for when no daemon knows it better."""
    context = session.context
    return None if context.read_at is None else build_context(context.used, context.room)


def _build_screen(session: Session, live: LiveSession | None) -> ScreenTold | None:
    """Build the screen without secrets; `None` once the agent is gone."""
    if live is None or not live.rows or session.living_leg is None:
        return None
    # Most who load this show no screen.
    from agent_relay.redact.text import redact_text

    text = redact_text("\n".join(live.rows)).text
    return ScreenTold(
        session=session.id, leg=live.leg, title=redact_text(live.title).text, rows=tuple(text.split("\n"))
    )


def list_changes(before: View | None, after: View) -> Iterator[WatchEvent]:
    """Yield the events that lead from `before` to `after`; everything if `before` is `None`."""
    if before is None or before.is_daemon_here is not after.is_daemon_here:
        yield DaemonTold(state="here" if after.is_daemon_here else "away")
    rests = RestsTold(agents=after.resting, unknown=after.rests_unknown)
    if before is None or rests != RestsTold(agents=before.resting, unknown=before.rests_unknown):
        yield rests
    if after.days and (before is None or before.days != after.days):
        yield DaysTold(days=after.days)
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
    if after.timeline is not None and (before is None or before.timeline != after.timeline):
        yield after.timeline
    if after.screen is not None and (before is None or before.screen != after.screen):
        yield after.screen
