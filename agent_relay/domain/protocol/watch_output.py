"""The lines that `watch --json` prints, an event each, and their published JSON Schema.

The terminal and the page in a browser are drawn from the same values.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from agent_relay.domain.documents.document import Strict


class _Part(Strict):
    """Fields of later versions may be added, none is taken away."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TokensUsed(_Part):
    """What the session's legs have used, by the agents' own records, as `agent-relay metrics` counts it."""

    input: int
    cached: int
    cache_write: int
    output: int
    reasoning: int = Field(description="part of the output")
    total: int
    cost_usd: str = Field(description="a decimal, at list prices; empty where no price is known")
    cost_is_whole: bool


class WindowUsed(_Part):
    """A usage window of the agent's account, as the agent last told of it."""

    name: str
    minutes: int = Field(default=0, description="how long it is; 0 where nobody knows")
    used_percent: float
    resets_at: str


class ContextUsed(_Part):
    """How full the running agent's context is; `room` is 0 where nobody knows it."""

    used: int
    room: int
    percent: int | None = Field(description="null where the room is not known")


class WatchPlanStep(_Part):
    """One step of the agent's own plan."""

    text: str
    status: Literal["pending", "in_progress", "completed", "cancelled"]


class SessionTold(_Part):
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


class ScreenTold(_Part):
    """What the agent's screen shows, without secrets; printed at most a few times a second."""

    type: Literal["screen"] = "screen"
    session: str
    leg: str
    title: str
    rows: tuple[str, ...] = Field(description="from the top, without empty rows at the end")


class EventTold(_Part):
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


class RestingAgent(_Part):
    """An agent that rests; `until` is empty where only the user can end it."""

    agent: str
    model: str
    scope: str
    until: str


class RestsTold(_Part):
    """Every agent that rests now; printed again when that changed."""

    type: Literal["resting"] = "resting"
    agents: tuple[RestingAgent, ...]
    unknown: str = Field(default="", description="why nobody can tell who rests; empty where that is told")


class DaemonTold(_Part):
    """Whether a daemon runs. While it is away, agents work on and only files are seen."""

    type: Literal["daemon"] = "daemon"
    state: Literal["here", "away"]


class SessionLeft(_Part):
    """A session is not shown any more: it ended a while ago, or its journal is gone."""

    type: Literal["left"] = "left"
    session: str


WatchEvent = Annotated[
    SessionTold | ScreenTold | EventTold | RestsTold | DaemonTold | SessionLeft,
    Field(discriminator="type"),
]


def build_watch_schema() -> dict[str, object]:
    """Build the JSON Schema of one line."""
    schema: dict[str, object] = TypeAdapter(WatchEvent).json_schema(mode="serialization")
    head: dict[str, object] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of agent-relay watch --json",
    }
    return head | schema
