"""When a recorded leg began by the clock: what was typed into it, found again in the records it left."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent_relay.domain.signal import Record
from agent_relay.logic.detector.records import iter_strings, squeeze

# The record of a prompt is written a little after its last key.
_SLACK = timedelta(seconds=0.5)
_TOLERANCE = timedelta(seconds=2)


def find_start(
    records: Sequence[Record], *, typed: Sequence[tuple[str, float]], length_s: float
) -> datetime | None:
    """The leg's start, or `None` where no record carries a time.

    `typed` are the lines people submitted, with the seconds at which they did. A line found again as a
    whole string of a record ties the two clocks, as early as the leg's length allows. Where prompts
    were typed and none is found, the records are those of earlier legs and the start lies behind them
    all. With nothing typed, the leg is taken to have ended with its newest record; where the length is
    not known either (0), to have begun with its oldest.
    """
    times = [record.at for record in records if record.at is not None]
    if not times:
        return None
    newest = max(times)
    if not length_s and not typed:
        return min(times)
    reckoned = newest - timedelta(seconds=length_s)
    found = _find_lines(records, {line for line, _ in typed})
    prompts = [line for line, _ in typed if not line.startswith("/")]
    if prompts and not any(line in found for line in prompts):
        return newest + timedelta(microseconds=1)
    starts = [at - timedelta(seconds=seconds) for line, seconds in typed for at in found.get(line, ())]
    return min((start for start in starts if start >= reckoned - _TOLERANCE), default=reckoned) - _SLACK


def _find_lines(records: Sequence[Record], lines: set[str]) -> dict[str, list[datetime]]:
    """The times at which each line stands in a record: of earlier legs, of its own, and quoted later."""
    found: dict[str, list[datetime]] = {}
    for record in records:
        if record.at is None:
            continue
        for string in iter_strings(record.data):
            line = squeeze(string)
            if line in lines:
                found.setdefault(line, []).append(record.at)
    return found
