"""Define what watchers and exporters are sent: lines of `watch --json`, live sessions, exported metrics."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from pydantic import Field

from agent_relay.domain.documents.document import Printed
from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.screen import Screen
from agent_relay.domain.text.plain import clean_text, count_columns


class TokensUsed(Printed):
    """Tokens the session's legs used, by the agents' own records, as `agent-relay metrics` counts them."""

    input: int
    cached: int
    cache_write: int
    output: int
    reasoning: int = Field(description="part of the output")
    total: int
    cost_usd: str = Field(description="a decimal, at list prices; empty where no price is known")
    cost_is_whole: bool


class WindowUsed(Printed):
    """A usage window of the agent's account, as the agent last told of it."""

    name: str
    minutes: int = Field(default=0, description="how long it is; 0 where nobody knows")
    used_percent: float
    resets_at: str
    model: str = Field(default="", description="the one it is of; empty for the whole account")
    source: str = Field(default="", description="which of the agent's records said so; empty if unknown")
    read_at: str = Field(default="", description="when it was said; empty if unknown")


class ContextUsed(Printed):
    """Use of the running agent's context; `room` is 0 where nobody knows it."""

    used: int
    room: int
    percent: int | None = Field(description="null where the room is not known")


class WatchPlanStep(Printed):
    """One step of the agent's own plan."""

    text: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]


class SessionTold(Printed):
    """One session as it is now; printed again when something of it changed."""

    type: Literal["session"] = "session"
    session: str
    root: str
    task: str
    title: str = Field(description="one line: the task, or the first prompt; empty while there is none")
    state: str
    since: str = Field(description="when it came into this state")
    agent: str
    model: str = Field(description="the one relay chose, or the one the agent names; empty where unknown")
    leg: str
    headless: bool
    turn_since: str = Field(description="when the turn under way began; empty between turns")
    turn_s: float | None = Field(description="how long the last turn took; null before the first")
    turns: int = Field(description="turns seen on the screen or in records, the one under way included")
    handoff: str = Field(description="how far a handoff under way is, empty for none")
    handoffs: int
    limits: int = Field(description="how often a limit stopped the session")
    about: str = Field(description="what should be known now: the session's message, or why it waits")
    trouble: str = Field(description="what holds it up, as the daemon says; empty for nothing")
    tokens: TokensUsed | None
    windows: tuple[WindowUsed, ...]
    context: ContextUsed | None
    plan: tuple[WatchPlanStep, ...]


class ScreenTold(Printed):
    """The agent's screen, without secrets; printed at most a few times a second."""

    type: Literal["screen"] = "screen"
    session: str
    leg: str
    title: str
    rows: tuple[str, ...] = Field(description="from the top, without empty rows at the end")


class EventTold(Printed):
    """Something that happened, in words; `number` is its line in the session's journal."""

    type: Literal["event"] = "event"
    session: str
    number: int
    at: str
    name: str
    text: str
    details: dict[str, str] = Field(
        default_factory=dict, description="codes, names and moments of it, by name; never anybody's words"
    )


class RestingAgent(Printed):
    """An agent that rests; `until` is empty where only the user can end it."""

    agent: str
    model: str
    scope: str
    until: str
    assumed: bool = Field(default=False, description="whether the agent did not say until when")


class RestsTold(Printed):
    """Every agent that rests now; printed again when that changed."""

    type: Literal["resting"] = "resting"
    agents: tuple[RestingAgent, ...]
    unknown: str = Field(default="", description="why nobody can tell who rests; empty where that is told")


class DaemonTold(Printed):
    """State of the daemon. While it is away, agents work on and only files are seen."""

    type: Literal["daemon"] = "daemon"
    state: Literal["here", "away"]


class SessionLeft(Printed):
    """A session is not shown any more: it ended a while ago, or its journal is gone."""

    type: Literal["left"] = "left"
    session: str


MOST_ROWS = 200
MOST_COLUMNS = 300
_MOST_TITLE = 200
_MOST_WINDOWS = 16
_MOST_TROUBLE = 500


class LiveSession(msgspec.Struct, frozen=True):
    """One session at work: its journal's newest line, its screen, what its agent last reported."""

    session: str
    number: int = 0
    leg: str = ""
    title: str = ""
    rows: tuple[str, ...] = ()
    trouble: str = ""
    model: str = ""
    context: ContextUsed | None = None
    windows: tuple[WindowUsed, ...] = ()


def build_context(used: int, room: int) -> ContextUsed:
    """Return the context with its percentage, which may be above a hundred."""
    return ContextUsed(used=used, room=room, percent=100 * used // room if room > 0 else None)


def cut_screen(screen: Screen) -> tuple[str, tuple[str, ...]]:
    """Return the title and the rows that are sent: bounded, without empty rows at the end."""
    rows = [clean_text(row.text).replace("\t", " ").replace("\n", " ") for row in screen.rows[:MOST_ROWS]]
    while rows and not rows[-1].strip():
        rows.pop()
    return clean_text(screen.title[:_MOST_TITLE]), tuple(_cut(row) for row in rows)


def _cut(row: str) -> str:
    row = row[:MOST_COLUMNS].rstrip()
    while count_columns(row) > MOST_COLUMNS:
        row = row[:-1]
    return row


def render_live(live: LiveSession) -> dict[str, object]:
    """Return the live session as JSON values."""
    return {
        "session": live.session,
        "number": live.number,
        "leg": live.leg,
        "title": live.title,
        "rows": list(live.rows),
        "trouble": live.trouble[:_MOST_TROUBLE],
        "model": live.model,
        "context": [live.context.used, live.context.room] if live.context is not None else None,
        "windows": [[one.name, one.used_percent, one.resets_at] for one in live.windows[:_MOST_WINDOWS]],
        "window_minutes": [one.minutes for one in live.windows[:_MOST_WINDOWS]],
        "window_origins": [[one.model, one.source, one.read_at] for one in live.windows[:_MOST_WINDOWS]],
    }


class _LiveFields(msgspec.Struct):
    """A live session as `render_live` writes it; older daemons do not send all about windows."""

    session: str
    number: int
    leg: str
    title: str
    rows: list[str]
    trouble: str
    model: str
    context: tuple[int, int] | None
    windows: list[tuple[str, float, str]]
    window_minutes: list[int] = []
    window_origins: list[tuple[str, str, str]] = []


def parse_live(value: object) -> LiveSession:
    """Parse a live session from JSON values; raise UntrustedDataError if they are not one."""
    try:
        found = msgspec.convert(value, _LiveFields)
    except msgspec.ValidationError:
        raise UntrustedDataError("what the daemon tells of a session is not what its format says") from None
    windows = found.windows[:_MOST_WINDOWS]
    lengths = [*found.window_minutes, *([0] * len(windows))]
    origins = [*found.window_origins, *([("", "", "")] * len(windows))]
    return LiveSession(
        session=found.session,
        number=found.number,
        leg=found.leg,
        title=found.title,
        rows=tuple(found.rows[:MOST_ROWS]),
        trouble=found.trouble,
        model=found.model,
        context=None if found.context is None else build_context(*found.context),
        windows=tuple(
            WindowUsed(
                name=name,
                minutes=minutes,
                used_percent=used,
                resets_at=resets_at,
                model=model,
                source=source,
                read_at=read_at,
            )
            for (name, used, resets_at), minutes, (model, source, read_at) in zip(
                windows, lengths, origins, strict=False
            )
        ),
    )


Kind = Literal["counter", "gauge"]
Labels = tuple[str, ...]


class Figure(msgspec.Struct, frozen=True):
    """One metric: `values` by the values of its `labels`."""

    name: str
    kind: Kind
    about: str
    labels: Labels
    values: Mapping[Labels, float]
    unit: str = ""
