"""What only the daemon knows of a session at work, as it sends it to watchers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.protocol.watch_output import ContextUsed, WindowUsed
from agent_relay.domain.screen import Screen
from agent_relay.domain.text.counts import count_columns
from agent_relay.domain.text.plain import clean_text

MOST_ROWS = 200
MOST_COLUMNS = 300
_MOST_TITLE = 200
_MOST_WINDOWS = 16
_MOST_TROUBLE = 500


@dataclass(frozen=True, slots=True)
class LiveSession:
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
    }


def parse_live(value: object) -> LiveSession:
    """Parse a live session from JSON values; raise UntrustedDataError if they are not one."""
    try:
        return _parse(value)
    except (KeyError, TypeError, ValueError):
        raise UntrustedDataError("what the daemon tells of a session is not what its format says") from None


def _parse(value: object) -> LiveSession:
    found = _mapping(value)
    context = found["context"]
    return LiveSession(
        session=_text(found["session"]),
        number=_whole(found["number"]),
        leg=_text(found["leg"]),
        title=_text(found["title"]),
        rows=tuple(_text(row) for row in _list(found["rows"])[:MOST_ROWS]),
        trouble=_text(found["trouble"]),
        model=_text(found["model"]),
        context=None if context is None else build_context(*(_whole(one) for one in _pair(context))),
        windows=_parse_windows(found["windows"], found.get("window_minutes", [])),
    )


def _parse_windows(value: object, minutes: object) -> tuple[WindowUsed, ...]:
    """Parse the windows; their lengths are a list of their own, which older daemons do not send."""
    rows, lengths = _list(value)[:_MOST_WINDOWS], [_whole(one) for one in _list(minutes)]
    lengths += [0] * (len(rows) - len(lengths))
    return tuple(_parse_window(row, length) for row, length in zip(rows, lengths, strict=False))


def _parse_window(value: object, minutes: int) -> WindowUsed:
    name, used, resets_at = _list(value)
    if not isinstance(used, (int, float)):
        raise TypeError("no number")
    return WindowUsed(name=_text(name), minutes=minutes, used_percent=float(used), resets_at=_text(resets_at))


def _pair(value: object) -> tuple[object, object]:
    first, second = _list(value)
    return first, second


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number")
    return value
