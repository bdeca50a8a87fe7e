"""The events of `watch --json` are a promise to programs."""

from agent_relay.domain.protocol.watch_events import build_watch_schema


def test_every_event_is_in_the_published_schema() -> None:
    """What is not there cannot be relied on; what is there stays."""
    schema = build_watch_schema()
    assert schema["title"] == "One line of agent-relay watch --json"
    told = schema["discriminator"]
    assert isinstance(told, dict)
    assert sorted(told["mapping"]) == [
        "daemon",
        "days",
        "event",
        "left",
        "resting",
        "screen",
        "session",
        "timeline",
    ]
