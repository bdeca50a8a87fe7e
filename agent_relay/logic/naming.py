"""What a leg's records say about its own native session: its id and where its transcript lies."""

from collections.abc import Mapping, Sequence

from agent_relay.domain.adapter import SourceSpec
from agent_relay.domain.signal import Record
from agent_relay.logic.detector.records import is_meant


def find_names(specs: Sequence[SourceSpec], record: Record) -> dict[str, str]:
    """The `native_id` and `transcript` the record names, by the fields its source's spec points at."""
    found: dict[str, str] = {}
    for spec in specs:
        if spec.role == record.source and is_meant(spec.names_where, record.data):
            for name, path in spec.names.items():
                value = _get(record.data, path)
                if isinstance(value, str) and value:
                    found[name] = value
    return found


def _get(data: Mapping[str, object], path: str) -> object:
    value: object = data
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
