"""The table of commands: the module that answers each, its usage, and the help that lists them.

Imports nothing: every start of `agent-relay` loads it.
"""

PACKAGE = "agent_relay.faces.cli"

COMMANDS: "dict[str, tuple[str, str, str]]" = {
    "run": (
        "start.run",
        "AGENT TASK [--continue ID] [-n TURNS] [--wait] [--json]",
        "one turn without a screen, that fails over",
    ),
    "chat": (
        "start.chat",
        "AGENT AGENT… TASK [-n TURNS] [--continue ID] [--json]",
        "several agents in turns, until all agree",
    ),
    "race": (
        "race.command",
        "AGENT AGENT… TASK [--test CMD] [--max-time S] [--apply]",
        "several at once in worktrees; the test decides",
    ),
    "attach": ("start.attach", "[SESSION]", "connect this terminal to a session"),
    "status": ("session.status", "[--all] [--json]", "what runs here and who rests until when"),
    "resume": (
        "agent_relay.faces.shell.entry:resume",
        "[SESSION] [--json]",
        "open the relay shell in an earlier session",
    ),
    "sessions": (
        "session.sessions",
        "[--native] [--json]",
        "every session; or the agents' own in this folder",
    ),
    "stop": ("session.stop", "[SESSION]", "end a session and its agent"),
    "take-over": ("session.take_over", "", "work here in place of another machine or container that is gone"),
    "watch": (
        "agent_relay.faces.watch.command",
        "[SESSION] [--all] [--json] [--no-follow]",
        "watch sessions live",
    ),
    "metrics": ("metrics.entry", "[SESSION] [--chain|--all] [--by WHAT]", "tokens, money, turns and time"),
    "export": (
        "agent_relay.faces.export.command",
        "[--prometheus PORT] [--otlp URL] [--webhook URL]",
        "send figures and events to other systems",
    ),
    "limits": ("roster.limits", "[--json] [clear AGENT]", "which agents rest, why, and until when"),
    "agents": ("roster.agents", "[--json]", "the agents known, installed and signed in"),
    "model": ("roster.model", "[AGENT [MODEL]]", "the model an agent is started with"),
    "order": ("roster.order", "[AGENT…]", "show or set the order in which agents take over"),
    "handoff": (
        "handoff.command",
        "list|show|history|plan|retry|cancel|…",
        "look at handoffs; retry, cancel or close one",
    ),
    "relay": (
        "handoff.relay",
        "[SESSION] [--focus TEXT] [--narrative]",
        "hand over to the next agent of the order",
    ),
    "undo-handoff": ("handoff.undo", "[SESSION]", "give a session back to the agent before its last handoff"),
    "packet": ("packet.command", "show|diff|edit|verify|export|import|…", "what a successor is told"),
    "replay": ("replay:main", "RECORDING --agent A", "run the detector on a recorded session"),
    "adapters": ("roster.adapters", "list|trust", "where agents' adapters come from; trust a project's"),
    "init": ("installation.init", "", "prepare this repository and the configuration"),
    "doctor": ("installation.doctor", "[--json]", "check what is missing or broken"),
    "demo": ("demo", "[--fast]", "a real handoff between two scripted agents, no account"),
    "daemon": ("installation.daemon", "start|stop|restart|status|logs", "the process that owns the sessions"),
}
"""By first word: the module with its `run(words)` (or `module:function`), its arguments, and what it does.

A module of another face has its full name.
"""

AGENT_USAGE = (
    "AGENT [TASK] [--session ID | --new] [--from AGENT[:ID]] [--focus TEXT] [--model M]"
    " [--expect TEXT] [--priority P] [--rollback AGENT] [--no-launch] [--yes] [-- ARGS…]"
)


def render_help() -> str:
    """Return what `agent-relay --help` prints."""
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
