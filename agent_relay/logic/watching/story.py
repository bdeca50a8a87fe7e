"""A journal as a watcher follows it: the session, its turns, and what happened lately in words."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from agent_relay.domain.event import Body, Event
from agent_relay.domain.session import Session, State
from agent_relay.domain.watch_event import EventTold
from agent_relay.logic.fold import fold_event
from agent_relay.logic.titles import find_title
from agent_relay.logic.watching.words import list_details, render_event_line

_MOST_TOLD = 200
_MOST_TEXT = 500
_TITLING = ("task", "prompt", "text", "leg", "handoff")
"""The fields of events that make a title."""
_AT_WORK = frozenset({State.BUSY, State.ASKING})


@dataclass(frozen=True, slots=True)
class Story:
    """What the lines read so far tell; `session` is `None` before the first.

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


def go_on(story: Story, events: Iterable[Event], zone: tzinfo) -> Story:
    """The story after more lines. Raises ImpossibleEventError where the journal contradicts itself."""
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
