"""Define a session's timeline as it is printed: legs by agent, turns, handoffs, rests, usage over time.

Moments are ISO 8601, an empty one is not known or not there yet; no span ends before it begins.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

from pydantic import Field

from agent_relay.domain.documents.document import Printed
from agent_relay.domain.protocol.watch_output import WindowUsed


class TimelineUsage(Printed):
    """Usage by the agents' own records; a part whose record or price is unknown is left out."""

    tokens: int | None = Field(default=None, description="null where no record is known")
    tokens_are_whole: bool = False
    cost_usd: str = Field(default="", description="a decimal, at list prices; empty where no price is known")
    cost_is_whole: bool = False


UNKNOWN_USAGE = TimelineUsage()


def sum_usage(parts: Iterable[TimelineUsage]) -> TimelineUsage:
    """Return the usage of several legs; unknown only if that of each is."""
    known = list(parts)
    tokens = [part.tokens for part in known if part.tokens is not None]
    costs = [Decimal(part.cost_usd) for part in known if part.cost_usd]
    return TimelineUsage(
        tokens=sum(tokens) if tokens else None,
        tokens_are_whole=bool(known) and all(part.tokens_are_whole for part in known),
        cost_usd=format(sum(costs, Decimal(0)).normalize(), "f") if costs else "",
        cost_is_whole=bool(known) and all(part.cost_is_whole for part in known),
    )


class TimelineTurn(Printed):
    """A turn, or several drawn as one because there are more than can be shown."""

    number: int = Field(description="of the first of them in the session, from 1")
    count: int = 1
    begin: str
    end: str = Field(description="empty while it is under way")
    prompt: str = Field(default="", description="its beginning, one line; empty for several or if unknown")


class TimelineLeg(Printed):
    """One leg, in its agent's lane."""

    leg: str
    number: int = Field(description="in the session, from 1")
    begin: str
    end: str = Field(description="empty while it runs")
    how: str = Field(description="how it ended; empty while it runs")
    model: str = Field(description="the one relay chose; empty if none")
    headless: bool
    resumes: bool
    handoff: str = Field(description="the one that brought it; empty for none")
    turn_count: int
    turns: tuple[TimelineTurn, ...]
    usage: TimelineUsage


class TimelineRest(Printed):
    """An agent, or the whole session, does not work because of a limit."""

    begin: str
    end: str = Field(description="when it worked again; empty if it has not")
    until: str = Field(description="the reset, as it was told last; empty if unknown")
    scope: str = Field(default="", description="what the limit covers; empty for the session's own rest")
    model: str = ""
    why: str = Field(default="", description="why the session rests; empty for an agent's rest")


class TimelineLane(Printed):
    """One agent: its legs and rests, and what it used in this session; its windows as they are now."""

    agent: str
    legs: tuple[TimelineLeg, ...]
    rests: tuple[TimelineRest, ...]
    windows: tuple[WindowUsed, ...] = ()
    leg_count: int
    turn_count: int
    usage: TimelineUsage


class TimelineHandoff(Printed):
    """One handoff, from the moment it began to the moment its successor worked, or it failed."""

    handoff: str
    from_agent: str
    to_agent: str
    from_leg: str
    to_leg: str = Field(description="empty if none was started")
    reason: str
    why: str
    status: str
    begin: str
    end: str


class TimelineGap(Printed):
    """A long stretch in which nothing happened: it is drawn short."""

    begin: str
    end: str


class TimelineTold(Printed):
    """One session over time; printed again when something of it changed."""

    type: Literal["timeline"] = "timeline"
    session: str
    begin: str
    last: str = Field(description="the moment of the latest event")
    is_over: bool = Field(description="no leg runs")
    is_busy: bool = Field(description="a turn or a handoff is under way")
    clock_was_set_back: bool = Field(description="moments are as the clock said: spans may overlap")
    idle_s: float = Field(description="a stretch longer than this, in which nothing happens, is drawn short")
    turn_count: int
    legs_left_out: int = Field(description="earlier legs that are not listed; all figures include them")
    handoffs_left_out: int
    lanes: tuple[TimelineLane, ...]
    handoffs: tuple[TimelineHandoff, ...]
    rests: tuple[TimelineRest, ...] = Field(description="the session's own: no agent was available")
    gaps: tuple[TimelineGap, ...]
    usage: TimelineUsage


class UsageDay(Printed):
    """Usage of one day, or a stretch of days without any."""

    day: str = Field(description="ISO date in the user's zone; empty for several days without usage")
    empty_days: int = Field(default=0, description="how many days without usage this stands for")
    tokens: int | None = Field(description="null where no record is known")
    cost_usd: str = Field(description="a decimal, at list prices; empty where no price is known")
    cost_is_whole: bool


class DaysTold(Printed):
    """The newest days' usage in the repository, or on the machine; printed again when it changed."""

    type: Literal["days"] = "days"
    days: tuple[UsageDay, ...]
