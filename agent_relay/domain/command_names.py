"""The words `agent-relay` takes for itself: an agent of such a name is reached by the long form alone."""

COMMAND_NAMES = frozenset(
    {
        "adapters",
        "agent",
        "agents",
        "attach",
        "chat",
        "daemon",
        "demo",
        "doctor",
        "export",
        "handoff",
        "help",
        "init",
        "limits",
        "metrics",
        "model",
        "order",
        "packet",
        "race",
        "relay",
        "replay",
        "resume",
        "run",
        "sessions",
        "status",
        "stop",
        "take-over",
        "undo-handoff",
        "watch",
    }
)
"""A test holds this against the table of `faces.cli.commands`, which no lower floor may import."""
