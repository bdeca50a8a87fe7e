"""Imports of the server of processes with a limit: all that packets and redaction need, compiled.

Each process does one piece of work: what is not compiled here, each would compile again while somebody waits.
"""

from contextlib import suppress

from agent_relay.agents.adapters import prepare_renderers
from agent_relay.domain.errors import RelayError
from agent_relay.domain.text.plain import compile_all
from agent_relay.engine.publishing._packet_building import build_ordered, build_ordered_digest
from agent_relay.engine.publishing.checkpoint_building import build_checkpoint
from agent_relay.engine.publishing.limited_work import redact_event
from agent_relay.packet.render import render_packet

__all__ = ["build_checkpoint", "build_ordered", "build_ordered_digest", "redact_event", "render_packet"]

compile_all()
# Rendering a packet will report why, and the other work needs no template.
with suppress(RelayError):
    prepare_renderers()
