"""How full an agent's context is, and what its user wants done about that."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Level(StrEnum):
    """Between which of the user's marks a context is; `unknown` before its agent first reports it."""

    UNKNOWN = "unknown"
    LOW = "low"
    MIDDLE = "middle"
    ADVISE = "advise"
    DRAFT = "draft"
    ACT = "act"

    def is_above(self, other: "Level") -> bool:
        """Return whether this level means a fuller context than `other`."""
        return _LEVELS.index(self) > _LEVELS.index(other)


_LEVELS = tuple(Level)


@dataclass(frozen=True, slots=True)
class Reading:
    """What an agent's own record says: `used` tokens of the `room` it has until it compacts by itself.

    `room` is 0 if unknown. `at` is when, by the record's own time (aware).
    """

    used: int
    room: int
    at: datetime
    model: str = ""


@dataclass(frozen=True, slots=True)
class ContextWishes:
    """What the user wants done: the marks in percent of the room, and an absolute one in tokens (0 for none).

    `mode` is off, handoff, compact or ask. `rearm` is the mark below which a context has to fall before
    anything is done about the same leg again, `cooldown` the time between two handoffs or compactions. `to`
    is who takes over: "same", "next" of the order, or an agent's name.
    """

    mode: str = "off"
    advise: float = 70
    draft: float = 80
    act: float = 90
    rearm: float = 60
    ceiling: int = 0
    cooldown: timedelta = timedelta(minutes=10)
    to: str = "same"


NO_WISHES = ContextWishes()


@dataclass(frozen=True, slots=True)
class Context:
    """The running leg's context as last noted, and what was done about contexts in this session.

    `peak` is the highest level since it was last low: the user is warned of each level once on the way up.
    `is_spent` from when something was done about it, until it is low again. `relieved_at` is when that last
    was, in any leg. `has_drafted` is whether the leg's agent was asked to draft a handoff document,
    `is_drafted` whether since it was last low; `drafted_at` is when any leg's was.
    """

    used: int = 0
    room: int = 0
    level: Level = Level.UNKNOWN
    peak: Level = Level.UNKNOWN
    read_at: datetime | None = None
    is_spent: bool = False
    relieved_at: datetime | None = None
    has_drafted: bool = False
    is_drafted: bool = False
    drafted_at: datetime | None = None


UNKNOWN_CONTEXT = Context()
