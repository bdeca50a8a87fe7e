"""A detector's typed findings, and the rests in the ledger that follow from them.

A signal says what an agent's limit covers, until when, and how we know; a `Rest` which agent rests until
when, across sessions and repositories.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent_relay.domain.values.ids import AgentName


class Scope(StrEnum):
    """What a limit covers; the remedy follows from it."""

    TRANSIENT = "transient"
    MODEL = "model"
    ACCOUNT = "account"
    BILLING = "billing"
    AUTH = "auth"
    WARNING = "warning"


class Kind(StrEnum):
    """What a signal says happened."""

    LIMIT = "limit"
    NEAR_LIMIT = "near-limit"
    SILENT_LIMIT = "silent-limit"
    RETRY = "retry"
    FAILURE = "failure"


class Source(StrEnum):
    """Where evidence was found; everything but the screen is structured."""

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


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a signal is believed: the source, its words quoted (at most 400 characters), and the place."""

    source: Source
    text: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Signal:
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


@dataclass(frozen=True, slots=True)
class Record:
    """One structured record an agent left: `data` is the parsed object, or `{"text": line}` for a log.

    `at` is the record's own time (aware) if it has one; records older than the leg's start
    are history and never count. `where` names the file and offset, or the event stream.
    """

    source: Source
    data: dict[str, object]
    at: datetime | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """One limit an agent is under.

    `model` is empty for limits of the whole account. `until` is aware, or `None` if unknown: then the agent
    rests until the user says otherwise. `evidence` is what was seen, redacted.
    """

    agent: str
    model: str
    scope: str
    until: datetime | None
    evidence: str
    seen_at: datetime
