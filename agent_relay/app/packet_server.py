"""What the server of processes with a limit imports: all that packets and redaction need, made ready.

A process lives for one piece of work: what it had to compile, each would have to compile again while
somebody waits.
"""

from agent_relay.app.packet_building import build_ordered
from agent_relay.app.redaction import redact_event
from agent_relay.logic.patterns import compile_all

__all__ = ["build_ordered", "redact_event"]

compile_all()
