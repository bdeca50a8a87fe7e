"""Commands as hints name them, each usable where it is read; the names `agent-relay` reserves.

An agent with a reserved name is reached by `agent-relay agent NAME` alone. Hot commands load this:
it imports nothing.
"""

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


def agent_command(agent: str, *words: str) -> str:
    """Return the command that starts, continues or hands over to `agent`, even if its name is reserved.

    `words` follow it: options and their values, which need no quotes in a shell.
    """
    name = f"agent {agent}" if agent in COMMAND_NAMES else agent
    return " ".join(("agent-relay", name, *words))


def continue_command(agent: str, session: str, *words: str) -> str:
    """Return the command that continues `session` under `agent`, from any folder."""
    return agent_command(agent, "--session", session, *words)


def relay_command(session: str) -> str:
    """Return the command that hands `session` over to the next agent of the order."""
    return f"agent-relay relay {session}"


def retry_command(handoff: str, *words: str) -> str:
    """Return the command that resumes the handoff where it stopped."""
    return " ".join(("agent-relay handoff retry", handoff, *words))
