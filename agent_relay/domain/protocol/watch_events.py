"""Define the lines of `watch --json` as one union, with their JSON Schema; the daemon needs neither."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from agent_relay.domain.documents.document import build_schema
from agent_relay.domain.protocol.timeline import DaysTold, TimelineTold
from agent_relay.domain.protocol.watch_output import (
    DaemonTold,
    EventTold,
    RestsTold,
    ScreenTold,
    SessionLeft,
    SessionTold,
)

WatchEvent = Annotated[
    SessionTold | ScreenTold | EventTold | TimelineTold | RestsTold | DaysTold | DaemonTold | SessionLeft,
    Field(discriminator="type"),
]


def build_watch_schema() -> dict[str, object]:
    """Build the JSON Schema of one line."""
    return build_schema(TypeAdapter(WatchEvent), "One line of agent-relay watch --json")
