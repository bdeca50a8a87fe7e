"""Removes secrets from every string of a packet, those of fields we do not know included."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.packet import ResumePacket
from agent_relay.logic.packet_json import parse_packet, render_document
from agent_relay.logic.plain import clean_text
from agent_relay.logic.redact.allow import NOTHING, Allow
from agent_relay.logic.redact.rule import PLACEHOLDER
from agent_relay.logic.redact.text import Redacted, redact_text

_DEEPEST = 100
_REMOVED = re.compile(re.escape(PLACEHOLDER) + r"([a-z-]+)\]")
# Our own words and names: nothing in them comes from outside, and a reader relies on them.
_OURS = frozenset(
    {"schema", "version", "packet_id", "session_id", "sequence", "created_at", "redactions", "spared"}
)


@dataclass(frozen=True, slots=True)
class _Cleaner:
    """What is looked for, and what was removed and spared so far."""

    known: frozenset[str]
    allow: Allow
    counts: Counter[str] = field(default_factory=Counter)
    spared: Counter[str] = field(default_factory=Counter)

    def redact(self, text: str) -> Redacted:
        """`text` without secrets, not counted yet."""
        return redact_text(text, known=self.known, allow=self.allow)


def redact_packet(
    packet: ResumePacket, *, known: frozenset[str] = frozenset(), allow: Allow = NOTHING
) -> ResumePacket:
    """The packet with every string cleaned of control characters and secrets.

    `redactions` counts what it lost: what its facts had lost before and what an earlier packet said
    included. `spared` counts what is still in it because the user's list says so. Raises
    UntrustedDataError where unknown fields are nested absurdly deep.
    """
    cleaner = _Cleaner(known, allow)
    document = render_document(packet)
    for key, value in document.items():
        if key not in _OURS:
            document[key] = _redact(value, cleaner, depth=0)
    counts = cleaner.counts | Counter({entry.kind: entry.count for entry in packet.redactions})
    more = {entry.kind: entry.model_extra or {} for entry in packet.redactions}
    document["redactions"] = [
        {"kind": kind, "count": counts[kind], **more.get(kind, {})} for kind in sorted(counts)
    ]
    document["spared"] = [{"kind": kind, "count": cleaner.spared[kind]} for kind in sorted(cleaner.spared)]
    return parse_packet(document)


def _redact(value: object, cleaner: _Cleaner, *, depth: int) -> object:
    if depth > _DEEPEST:
        raise UntrustedDataError("the packet has fields nested too deeply to look for secrets in them")
    if isinstance(value, str):
        redacted = cleaner.redact(clean_text(value))
        cleaner.counts.update(_REMOVED.findall(redacted.text))
        cleaner.spared.update(redacted.spared)
        return redacted.text
    if isinstance(value, list):
        return [_redact(one, cleaner, depth=depth + 1) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {
            cast("str", _redact(key, cleaner, depth=depth + 1)): _redact_entry(key, one, cleaner, depth)
            for key, one in entries.items()
        }
    return value


def _redact_entry(key: str, value: object, cleaner: _Cleaner, depth: int) -> object:
    """A value together with its name: `{"password": "hunter2"}` is a secret only because of its key."""
    before = cleaner.spared.total()
    plain = _redact(value, cleaner, depth=depth + 1)
    if isinstance(value, str) and plain == clean_text(value):
        named = cleaner.redact(f'"{key}": "{plain}"')
        if cleaner.spared.total() == before:
            cleaner.spared.update(named.spared)
        if named.counts and named.text.startswith(f'"{key}": "[redacted'):
            cleaner.counts.update(named.counts)
            return named.text.removeprefix(f'"{key}": "').removesuffix('"')
    return plain
