"""Removes secrets from every string of a packet, those of fields we do not know included."""

import re
from collections import Counter
from typing import cast

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.packet import ResumePacket
from agent_relay.logic.packet_json import parse_packet, render_document
from agent_relay.logic.plain import clean_text
from agent_relay.logic.redact.rule import PLACEHOLDER
from agent_relay.logic.redact.text import redact_text

_DEEPEST = 100
_REMOVED = re.compile(re.escape(PLACEHOLDER) + r"([a-z-]+)\]")
# Our own words and names: nothing in them comes from outside, and a reader relies on them.
_OURS = frozenset({"schema", "version", "packet_id", "session_id", "sequence", "created_at", "redactions"})


def redact_packet(packet: ResumePacket, *, known: frozenset[str] = frozenset()) -> ResumePacket:
    """The packet with every string cleaned of control characters and secrets.

    `redactions` counts what it lost: what its facts had lost before and what an earlier packet said
    included. Raises UntrustedDataError where unknown fields are nested absurdly deep.
    """
    counts: Counter[str] = Counter()
    document = render_document(packet)
    for key, value in document.items():
        if key not in _OURS:
            document[key] = _redact(value, known, counts, depth=0)
    counts |= Counter({entry.kind: entry.count for entry in packet.redactions})
    document["redactions"] = [{"kind": kind, "count": counts[kind]} for kind in sorted(counts)]
    return parse_packet(document)


def _redact(value: object, known: frozenset[str], counts: Counter[str], *, depth: int) -> object:
    if depth > _DEEPEST:
        raise UntrustedDataError("the packet has fields nested too deeply to look for secrets in them")
    if isinstance(value, str):
        text = redact_text(clean_text(value), known=known).text
        counts.update(_REMOVED.findall(text))
        return text
    if isinstance(value, list):
        return [_redact(one, known, counts, depth=depth + 1) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {
            cast("str", _redact(key, known, counts, depth=depth + 1)): _redact_entry(
                key, one, known, counts, depth
            )
            for key, one in entries.items()
        }
    return value


def _redact_entry(key: str, value: object, known: frozenset[str], counts: Counter[str], depth: int) -> object:
    """A value together with its name: `{"password": "hunter2"}` is a secret only because of its key."""
    plain = _redact(value, known, counts, depth=depth + 1)
    if isinstance(value, str) and plain == clean_text(value):
        named = redact_text(f'"{key}": "{plain}"', known=known)
        if named.counts and named.text.startswith(f'"{key}": "[redacted'):
            counts.update(named.counts)
            return named.text.removeprefix(f'"{key}": "').removesuffix('"')
    return plain
