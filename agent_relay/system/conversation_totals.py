"""What an agent's own conversation had used before a moment, by the totals its transcript tells."""

from collections.abc import Mapping
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.domain.saying import Totals
from agent_relay.logic.detector.records import is_meant
from agent_relay.logic.json_text import parse_object
from agent_relay.logic.record_time import find_record_time
from agent_relay.logic.stream import read_tokens
from agent_relay.system.transcript_files import iterate_lines


def read_totals(path: str, totals: Totals, *, before: datetime) -> Mapping[str, int] | None:
    """Return the newest totals told before that moment (aware), by kind of token; `None` for none."""
    words = [value.encode() for value in totals.where.equals.values() if isinstance(value, str)]
    found: Mapping[str, int] | None = None
    try:
        for line in iterate_lines(path):
            record = parse_object(line) if all(word in line for word in words) else None
            if record is None or not is_meant(totals.where, record):
                continue
            at = find_record_time(record)
            if at is not None and at < before:
                found = read_tokens(totals.tokens, record)
    except RelayError:
        return None
    return found
