"""Finds and removes secrets, in plain text and in packets, and leaves ordinary code as it is."""

from agent_relay.logic.redact.allow import Allow, build_allow
from agent_relay.logic.redact.facts import redact_facts
from agent_relay.logic.redact.known import collect_known, parse_settings
from agent_relay.logic.redact.packet import redact_packet
from agent_relay.logic.redact.text import Redacted, redact_text, redact_words

__all__ = [
    "Allow",
    "Redacted",
    "build_allow",
    "collect_known",
    "parse_settings",
    "redact_facts",
    "redact_packet",
    "redact_text",
    "redact_words",
]
