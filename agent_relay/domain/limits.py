"""Define what may run out: limits and the rests that follow, full contexts, budgets, and quiet hours."""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum

import msgspec

from agent_relay.domain.values import AgentName


class Scope(StrEnum):
    """Extent of a limit; the remedy follows from it."""

    TRANSIENT = "transient"
    MODEL = "model"
    ACCOUNT = "account"
    BILLING = "billing"
    AUTH = "auth"
    WARNING = "warning"


class Kind(StrEnum):
    """Kind of event that a signal reports."""

    LIMIT = "limit"
    NEAR_LIMIT = "near-limit"
    SILENT_LIMIT = "silent-limit"
    RETRY = "retry"
    FAILURE = "failure"


class Source(StrEnum):
    """Place where evidence was found; everything but the screen is structured."""

    SCREEN = "screen"
    HOOK = "hook"
    TRANSCRIPT = "transcript"
    STATUS_LINE = "status-line"
    LOG = "log"
    TELEMETRY = "telemetry"
    EVENT = "event"
    STATE_FILE = "state-file"
    TERMINAL = "terminal"
    STREAM = "stream"
    PROXY = "proxy"
    CLOCK = "clock"


DATED = frozenset({Source.TRANSCRIPT, Source.LOG, Source.TELEMETRY})
"""Sources whose records carry their own time or are history; the others are heard live."""


class Evidence(msgspec.Struct, frozen=True):
    """Reason to believe a signal: the source, its words quoted (at most 400 characters), and the place."""

    source: Source
    text: str
    where: str = ""


class Signal(msgspec.Struct, frozen=True):
    """One finding about one agent.

    `resets_at` is aware, or `None` if the agent did not say. `decides` is whether it may be acted
    on without further agreement. `at_offset` is the byte of the leg's output it was seen at, `None`
    if no output was involved. `rule` names the adapter rule that matched. `model` is set for
    limits of one model.
    """

    agent: AgentName
    kind: Kind
    scope: Scope
    evidence: Evidence
    decides: bool
    resets_at: datetime | None = None
    at_offset: int | None = None
    rule: str = ""
    model: str = ""


class Record(msgspec.Struct, frozen=True):
    """One structured record an agent left: `data` is the parsed object, or `{"text": line}` for a log.

    `at` is the record's own time (aware) if it has one; records older than the leg's start
    are history and never count. `where` names the file and offset, or the event stream.
    """

    source: Source
    data: dict[str, object]
    at: datetime | None = None
    where: str = ""


class Rest(msgspec.Struct, frozen=True):
    """One limit an agent is under.

    `model` is empty for limits of the whole account. `until` is aware, or `None` if unknown: then the agent
    rests until the user says otherwise. `evidence` is what was seen, redacted. `assumed` is whether the agent
    did not say until when; the ledger does not hold it.
    """

    agent: str
    model: str
    scope: str
    until: datetime | None
    evidence: str
    seen_at: datetime
    assumed: bool = False


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


class Reading(msgspec.Struct, frozen=True):
    """An agent's own report: `used` tokens of the `room` it has until it compacts by itself.

    `room` is 0 if unknown. `at` is when, by the record's own time (aware).
    """

    used: int
    room: int
    at: datetime
    model: str = ""


class ContextWishes(msgspec.Struct, frozen=True):
    """The user's wishes for a full context: marks in percent of the room, and one in tokens (0 for none).

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


class NearLimitWishes(msgspec.Struct, frozen=True):
    """The near limit of a usage window: from `percent` on; 0 is what the agent's adapter says.

    With `by_rate` also when it would be full before the turn under way ends, as the agent uses it now.
    """

    percent: float = 0
    by_rate: bool = True


NEAR_BY_ADAPTER = NearLimitWishes()

FULL_PERCENT = 100.0


class FullWindow(msgspec.Struct, frozen=True):
    """A usage window of an agent's whole account, used up until it begins anew; `name` is in words."""

    name: str
    until: datetime


class Context(msgspec.Struct, frozen=True):
    """The running leg's context as last noted, and what was done about contexts in this session.

    `peak` is the highest level since it was last low: the user is warned of each level once on the way up.
    `is_spent` from when something was done about it, until it is low again. `relieved_at` is when that last
    was, in any leg. `has_drafted` is whether the leg's agent was asked to draft a handoff document,
    `is_drafted` whether since it was last low; `drafted_at` is when any leg's was. `wish` is what follows
    from the agent's wish to be compacted: "compact" after the turn, "compacting" from then on, or "ask" if
    that is up to the user.
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
    wish: str = ""

    @property
    def is_filling(self) -> bool:
        """Return whether it is known to be more than low."""
        return self.level.is_above(Level.LOW)

    @property
    def is_wish_open(self) -> bool:
        """Return whether what the agent wishes has not been done yet."""
        return self.wish in {"compact", "ask"}


UNKNOWN_CONTEXT = Context()


class Mark(StrEnum):
    """Degree to which a budget is used.

    `uncounted` while that cannot be counted, or not all of it; `unpriced` while it is not known because some
    model has no known price.
    """

    OPEN = "open"
    UNCOUNTED = "uncounted"
    UNPRICED = "unpriced"
    WARN = "warn"
    SPENT = "spent"

    def is_above(self, other: "Mark") -> bool:
        """Return whether more of the budget is used than at `other`."""
        return _MARKS.index(self) > _MARKS.index(other)


_MARKS = tuple(Mark)


class Budget(msgspec.Struct, frozen=True):
    """A budget of `tokens`, or of US dollars, for a session or a day (`per`).

    For a session, what its legs used counts; for a day, all the user's usage on this machine; `agent`
    narrows it to one agent. At `warn` percent the user is warned. When it is used up, `then` says what
    happens: nothing more (warn), the agent hands over (handoff), or the session ends (stop).
    """

    per: str
    agent: str = ""
    tokens: int = 0
    dollars: Decimal | None = None
    warn: float = 80
    then: str = "warn"

    @property
    def name(self) -> str:
        """The budget in words: `your budget of $5.00 a day for claude`; no two of a user share it."""
        allowed = f"{self.tokens:,} tokens" if self.dollars is None else f"${self.dollars:,.2f}"
        return f"your budget of {allowed} a {self.per}{f' for {self.agent}' if self.agent else ''}"


class Spending(msgspec.Struct, frozen=True):
    """Use of a budget: `text` says it in words, `mark` in one.

    `period` is the day it is about (ISO 8601), until the moment `until`; both empty for a session's. `agent`
    and `then` are the budget's. `is_done` once the session did what `then` says; `at` is when it was noted.
    """

    budget: str
    mark: Mark
    text: str
    agent: str = ""
    then: str = "warn"
    period: str = ""
    until: str = ""
    at: datetime | None = None
    is_done: bool = False


_SPAN = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])\s*-\s*([01]?[0-9]|2[0-3]):([0-5][0-9])")
_ALWAYS = "always"


class QuietHours(msgspec.Struct, frozen=True):
    """From `begin` up to `end` of every day, by the clock on the wall; over midnight where `end` is earlier.

    `always` is every hour. Without a beginning there are none.
    """

    begin: time | None = None
    end: time = time()
    always: bool = False

    def contains(self, at: datetime, zone: tzinfo) -> bool:
        """Return whether `at` is within them, for a user who lives in `zone`."""
        if self.begin is None:
            return self.always
        now = at.astimezone(zone).time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end

    def find_next_allowed(self, at: datetime, zone: tzinfo) -> datetime | None:
        """Return the first moment from `at` on outside them; `None` if every hour is quiet."""
        if self.always:
            return None
        if not self.contains(at, zone):
            return at
        today = at.astimezone(zone).date()
        # Compared in one zone: two moments with the same zone are compared by their clocks alone.
        ends = (datetime.combine(today + timedelta(days), self.end, zone).astimezone(UTC) for days in (0, 1))
        return next(end for end in ends if end > at)


NO_QUIET_HOURS = QuietHours()


def parse_quiet_hours(text: str) -> QuietHours:
    """Parse the hours `text` names: `HH:MM-HH:MM`, `always`, or none if it is empty.

    Raises ValueError.
    """
    plain = text.strip()
    if plain in {"", _ALWAYS}:
        return QuietHours(always=bool(plain))
    found = _SPAN.fullmatch(plain)
    if found is None:
        raise ValueError(
            f'{text[:40]!r} is not a time range; write it like "22:00-07:00", or "always", or leave it empty'
        )
    hours = [int(part) for part in found.groups()]
    begin, end = time(hours[0], hours[1]), time(hours[2], hours[3])
    if begin == end:
        raise ValueError(f'{text[:40]!r} begins and ends at the same time; for every hour, write "always"')
    return QuietHours(begin, end)
