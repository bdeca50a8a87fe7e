"""Names of things as types."""

from typing import NewType

SessionId = NewType("SessionId", str)
LegId = NewType("LegId", str)
PacketId = NewType("PacketId", str)
AgentName = NewType("AgentName", str)
