"""The words `agent-relay` knows, where each is answered, and the help that lists them; imports nothing."""

PACKAGE = "agent_relay.faces.cli"

COMMANDS: "dict[str, tuple[str, str, str]]" = {
    "run": (
        "run",
        "AGENT TASK [--continue ID] [-n TURNS] [--wait] [--json]",
        "one turn without a screen, that fails over",
    ),
    "chat": (
        "chat",
        "AGENT AGENT… TASK [-n TURNS] [--continue ID] [--json]",
        "several agents in turns, until all agree",
    ),
    "race": (
        "race.command",
        "AGENT AGENT… TASK [--test CMD] [--max-time S] [--apply]",
        "several at once in worktrees; the test decides",
    ),
    "attach": ("attach", "[SESSION]", "connect this terminal to a session"),
    "status": ("status", "[--all] [--json]", "what runs here and who rests until when"),
    "resume": (
        "agent_relay.faces.shell.opening:resume",
        "[SESSION] [--json]",
        "open the relay shell in an earlier session",
    ),
    "sessions": ("sessions", "[--native] [--json]", "every session; or the agents' own in this folder"),
    "stop": ("stop", "[SESSION]", "end a session and its agent"),
    "take-over": ("take_over", "", "work here in place of another machine or container that is gone"),
    "watch": ("watch.command", "[SESSION] [--all] [--json] [--no-follow]", "watch sessions live"),
    "metrics": ("metrics.kept", "[SESSION] [--chain|--all] [--by WHAT]", "tokens, money, turns and time"),
    "export": (
        "export.command",
        "[--prometheus PORT] [--otlp URL] [--webhook URL]",
        "send figures and events to other systems",
    ),
    "limits": ("limits", "[--json] [clear AGENT]", "which agents rest, why, and until when"),
    "agents": ("agents", "[--json]", "the agents known, installed and signed in"),
    "model": ("model", "[AGENT [MODEL]]", "the model an agent is started with"),
    "order": ("order", "[AGENT…]", "show or set the order in which agents take over"),
    "handoff": (
        "handoff.command",
        "list|show|history|plan|retry|cancel|…",
        "look at handoffs; retry, cancel or close one",
    ),
    "relay": ("relay", "[SESSION] [--focus TEXT] [--narrative]", "hand over to the next agent of the order"),
    "undo-handoff": ("undo_handoff", "[SESSION]", "give a session back to the agent before its last handoff"),
    "packet": ("packet.command", "show|diff|edit|verify|export|import|…", "what a successor is told"),
    "replay": ("replay:main", "RECORDING --agent A", "run the detector on a recorded session"),
    "adapters": ("adapters", "list|trust", "where agents' adapters come from; trust a project's"),
    "init": ("init", "", "prepare this repository and the configuration"),
    "doctor": ("doctor", "[--json]", "check what is missing or broken"),
    "demo": ("demo", "[--fast]", "a real handoff between two scripted agents, no account"),
    "daemon": ("daemon", "start|stop|restart|status|logs", "the process that owns the sessions"),
}
"""By first word: the module with its `run(words)` (or `module:function`), its arguments, and what it does.

A module of another face has its full name.
"""

AGENT_USAGE = (
    "AGENT [TASK] [--session ID | --new] [--from AGENT[:ID]] [--focus TEXT] [--model M]"
    " [--expect TEXT] [--priority P] [--rollback AGENT] [--no-launch] [--yes] [-- ARGS…]"
)


def render_help() -> str:
    """What `agent-relay --help` prints."""
    width = max(len(f"{name} {usage}") for name, (_, usage, _) in COMMANDS.items())
    rows = [f"  {f'{name} {usage}':{width}}  {about}" for name, (_, usage, about) in COMMANDS.items()]
    return "\n".join(
        [
            "A coding agent hits its limit; the work goes on in another one, from exactly the same point.",
            "",
            f"usage: agent-relay {AGENT_USAGE}",
            "           a session here under that agent: attach, hand over or start, whichever fits",
            "       agent-relay COMMAND …",
            "",
            *rows,
            "",
            "Every command answers --help. Files: docs/cli.md, docs/architecture.md.",
            "",
        ]
    )
