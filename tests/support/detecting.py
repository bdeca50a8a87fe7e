"""A detector over rules small enough to read, and short ways to show it things."""

from datetime import UTC, datetime, timedelta

from agent_relay.detect.detector import Detector
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.limits import Record, Signal, Source
from agent_relay.domain.screen import Row, Screen
from agent_relay.domain.values import AgentName

START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SAYS = {"accepts": ["x"], "rejects": ["y"]}
RULES = Rules.parse(
    {
        "feeds": [
            {"name": "hook", "source": "hook", "where": {"equals": {"event": "fail"}}, "text": "text"},
            {"name": "row", "source": "transcript", "where": {"equals": {"type": "error"}}, "text": "text"},
            {"name": "event", "source": "event", "text": "text"},
            {"name": "screen", "source": "screen", "place": {"starts": "^! "}},
            {"name": "odd", "source": "screen", "place": {"starts": r"^\? "}},
        ],
        "limits": [
            {
                "id": "limit",
                "feeds": ["hook", "row", "screen"],
                "pattern": r"^limit reached(?: until (?P<reset>.+))?$",
                "kind": "limit",
                "scope": "account",
                "reset": [{"forms": ["clock"], "group": "reset"}],
                "window": "day",
                **SAYS,
            },
            {
                "id": "retry",
                "feeds": ["event", "screen"],
                "pattern": r"^retry(?: in (?P<wait>.+))?$",
                "kind": "retry",
                "scope": "transient",
                "wait": {"forms": ["duration"], "group": "wait"},
                "long_scope": "model",
                "stuck_scope": "account",
                **SAYS,
            },
            {
                "id": "away",
                "feeds": ["event"],
                "pattern": "^network$",
                "kind": "retry",
                "scope": "transient",
                **SAYS,
            },
            {
                "id": "busy",
                "feeds": ["screen"],
                "pattern": "^server busy, try .+$",
                "kind": "retry",
                "scope": "transient",
                "stuck_scope": "account",
                "corroborate": "unsaid",
                **SAYS,
            },
            {
                "id": "dialog",
                "feeds": ["screen"],
                "pattern": "^choose a model$",
                "kind": "limit",
                "scope": "model",
                "corroborate": "unanswered",
                **SAYS,
            },
            {
                "id": "near",
                "feeds": ["screen"],
                "pattern": "^nearly there$",
                "kind": "near-limit",
                "scope": "warning",
                "corroborate": "unsaid",
                **SAYS,
            },
            {
                "id": "switched",
                "feeds": ["row"],
                "pattern": "^switched$",
                "kind": "limit",
                "scope": "model",
                "corroborate": "seen",
                **SAYS,
            },
        ],
        "progress": [
            {"source": "transcript", "means": "prompt", "where": {"equals": {"type": "user"}}},
            {"source": "transcript", "means": "answer", "where": {"equals": {"type": "agent"}}},
            {"source": "event", "means": "healed", "where": {"equals": {"type": "idle"}}},
        ],
        "windows": [
            {"name": "day", "source": "status-line", "used": "used", "reset": "reset", "near_percent": 90},
            {
                "name": "week",
                "source": "status-line",
                "used": "week",
                "reset": "week_reset",
                "near_percent": 90,
            },
        ],
    }
)


def at(seconds: float) -> datetime:
    """Seconds after the start of the leg."""
    return START + timedelta(seconds=seconds)


def build(*, trusts_screen: bool = False, rules: Rules = RULES) -> Detector:
    """A detector of these rules with five minutes of patience."""
    return Detector(
        rules, agent=AgentName("a"), started_at=START, zone=UTC, patience_s=300, trusts_screen=trusts_screen
    )


def row(seconds: float, kind: str, text: str) -> Record:
    """A transcript row."""
    return Record(Source.TRANSCRIPT, {"type": kind, "text": text}, at(seconds), "t")


def say(detector: Detector, seconds: float, kind: str, text: str) -> tuple[Signal, ...]:
    """What the detector says to a transcript row."""
    return detector.hear(row(seconds, kind, text), now=at(seconds))


def event(detector: Detector, seconds: float, text: str, kind: str = "") -> tuple[Signal, ...]:
    """What it says to an event."""
    record = Record(Source.EVENT, {"type": kind, "text": text})
    return detector.hear(record, now=at(seconds))


def status(detector: Detector, seconds: float, used: object, reset: object) -> tuple[Signal, ...]:
    """What it says to a status line."""
    record = Record(Source.STATUS_LINE, {"used": used, "reset": reset})
    return detector.hear(record, now=at(seconds))


def week(detector: Detector, seconds: float, used: object) -> tuple[Signal, ...]:
    """What it says to a status line about the week that ends a day later."""
    record = Record(Source.STATUS_LINE, {"week": used, "week_reset": at(90000).timestamp()})
    return detector.hear(record, now=at(seconds))


def look(detector: Detector, seconds: float, *rows: str) -> tuple[Signal, ...]:
    """What it says to a screen of these rows."""
    screen = Screen(tuple(Row(text) for text in rows), 80)
    return detector.look(screen, now=at(seconds), at_offset=int(seconds))


def render(signals: tuple[Signal, ...]) -> list[str]:
    """Signals as short lines."""
    return [
        f"{signal.kind} {signal.scope} {signal.resets_at.strftime('%H:%M:%S') if signal.resets_at else '-'}"
        f" {signal.evidence.source} {'acts' if signal.decides else 'no'}"
        for signal in signals
    ]
