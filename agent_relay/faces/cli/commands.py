"""The one table of commands: on the command line, in the relay shell and behind the relay key.

Dispatch, help, completion and the generated pages read it. Imports nothing: every start of `agent-relay`
loads it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Form:
    """A command as it is typed in one place, and what it does there.

    `more` are further lines of its help, `outside` is the command line that does the same, and `completes` is
    what its words are completed to: `agent`, `session`, `command`, or `word` for its sub-commands.
    """

    __slots__ = ("about", "completes", "more", "outside", "usage")

    def __init__(
        self,
        usage: str = "",
        about: str = "",
        *,
        more: "Sequence[str]" = (),
        outside: str = "",
        completes: str = "",
    ) -> None:
        self.usage = usage
        self.about = about
        self.more = more
        self.outside = outside
        self.completes = completes


class Command:
    """One command; `shell` and `key` are its forms in the relay shell and behind the relay key.

    `place` is what answers it, as `module:name` below `agent_relay.faces`: a function for typer, functions by
    sub-command, or with `takes_words` a function of the words. It is empty if the command line lacks the
    command. `words` are its sub-commands. Behind a slash the word at `text_at` begins a free
    text. A form without `about` is typed and explained as on the command line.
    """

    __slots__ = ("about", "key", "name", "place", "shell", "takes_words", "text_at", "usage", "words")

    def __init__(
        self,
        name: str,
        usage: str = "",
        about: str = "",
        place: str = "",
        *,
        takes_words: bool = False,
        words: "Sequence[str]" = (),
        text_at: int | None = None,
        shell: Form | None = None,
        key: Form | None = None,
    ) -> None:
        self.name = name
        self.usage = usage
        self.about = about
        self.place = f"agent_relay.faces.{place}" if place else ""
        self.takes_words = takes_words
        self.words = words
        self.text_at = text_at
        self.shell = shell
        self.key = key
        for form in (shell, key):
            if form is not None:
                form.outside = form.outside or (f"agent-relay {name}" if place else "")
                if not form.about:
                    form.usage, form.about = usage, about

    def load(self) -> "Callable[..., int]":
        """Load and return what answers the command: a function, or a table of functions by sub-command."""
        import importlib

        module, _, name = self.place.partition(":")
        found: Callable[..., int] = getattr(importlib.import_module(module), name)
        return found

    @property
    def shell_form(self) -> Form:
        """The form in the relay shell; the one of the command line if it has none there."""
        return self.shell or Form(self.usage, self.about)


_TABLE = (
    Command(
        "use",
        text_at=1,
        shell=Form(
            "AGENT [MESSAGE]",
            "hand over to AGENT; MESSAGE is its first prompt",
            more=(
                "While an agent works, its turn passes on at once; else AGENT gets your next message.",
                "AGENT reads a packet, or goes on in its own conversation with what changed since.",
                "While another agent is taking over, AGENT takes over after that.",
            ),
            outside="agent-relay AGENT --session ID",
            completes="agent",
        ),
        key=Form(
            "AGENT [FOCUS]",
            "hand over to AGENT, which should look at FOCUS first",
            more=("/use AGENT --model M --focus TEXT --task TEXT --expect TEXT …   like agent-relay AGENT",),
            outside="agent-relay AGENT --session ID",
        ),
    ),
    Command(
        "run",
        "AGENT TASK [--continue ID] [-n TURNS] [--wait] [--json]",
        "one turn without a screen; the next agent takes over at a limit",
        "cli.session.run:run_turn",
        takes_words=True,
    ),
    Command(
        "chat",
        "AGENT AGENT… TASK [-n TURNS] [--continue ID] [--json]",
        "several agents in turns, until all agree",
        "cli.session.run:run_chat",
        takes_words=True,
    ),
    Command(
        "race",
        "AGENT AGENT… TASK [--test CMD] [--max-time S] [--apply]",
        "several agents at once in worktrees; the test decides",
        "cli.race:RACE",
        words=("schema", "show", "list", "diff", "apply", "stop", "resume", "clean"),
    ),
    Command(
        "relay",
        "[SESSION] [--focus TEXT] [--narrative] [--digest]",
        "hand over to the next agent of the order",
        "cli.session.handoff:relay",
        text_at=0,
        shell=Form("[MESSAGE]", "hand over to the next agent of the order"),
        key=Form("[FOCUS]", "hand over to the next agent of the order at once"),
    ),
    Command(
        "handoff",
        "list|show|history|plan|retry|cancel|…",
        "look at handoffs; retry, cancel or close one",
        "cli.session.handoff:run_handoff",
        takes_words=True,
        words=("list", "show", "history", "plan", "retry", "cancel", "complete", "fail", "narrative"),
        text_at=0,
        shell=Form(
            "[FOCUS] | list | show ID | history | plan | retry ID | …",
            "the agent writes a handoff document, then the next agent takes over",
            more=(
                "The document is written in a copy of the conversation, which stays as it is; Esc cancels.",
                "FOCUS is what the next agent should look at first.",
                "The other words look at or change handoffs; narrative only has the document written.",
            ),
            outside="agent-relay relay --narrative, agent-relay handoff",
            completes="word",
        ),
        key=Form(
            "[FOCUS]",
            "hand over to the next agent of the order, after writing a document for it",
            more=("/handoff list|show ID|history|plan|retry ID|cancel ID|complete ID|fail ID|narrative",),
        ),
    ),
    Command(
        "undo-handoff",
        "[SESSION]",
        "give a session back to the agent that had it before its last handoff",
        "cli.session.handoff:undo_handoff",
        shell=Form(),
        key=Form("", "give the session back to its previous agent"),
    ),
    Command(
        "attach",
        "[SESSION]",
        "connect this terminal to a session",
        "cli.session.attach:run_attach",
        takes_words=True,
        shell=Form(
            "[SESSION]",
            "open this conversation in the agent's own screen; /detach comes back here",
            more=(
                "During a turn, the screen opens when the turn ends, before waiting messages are sent.",
                "After /detach the agent goes on there; your next message waits until it is done.",
            ),
            completes="session",
        ),
    ),
    Command(
        "status",
        "[--all] [--json]",
        "the sessions here, and which agents are resting until when",
        "cli.session.status:run_status",
        takes_words=True,
        shell=Form(),
        key=Form("", "this session in short"),
    ),
    Command(
        "sessions",
        "[--native] [--json]",
        "every session; or the agents' own in this folder",
        "cli.session.sessions:sessions",
        shell=Form(),
        key=Form(),
    ),
    Command(
        "new",
        shell=Form(
            "",
            "your next message begins a new session",
            more=("The current session stays as it is: /resume goes on with it.",),
            outside="agent-relay AGENT --new",
        ),
    ),
    Command(
        "resume",
        "[SESSION] [--json]",
        "open the relay shell in an earlier session",
        "shell.entry:resume",
        takes_words=True,
        shell=Form(
            "[SESSION]",
            "go on with another session of this repository, also one whose turn is running",
            more=(
                "A message that no agent could take, because all rested, waits to be sent again.",
                "If another shell has the session too, your messages wait for its turns.",
            ),
            completes="session",
        ),
    ),
    Command(
        "stop",
        "[SESSION]",
        "end a session and its agent",
        "cli.session.sessions:stop",
        key=Form("", "end the session and its agent"),
    ),
    Command(
        "take-over",
        "",
        "work here in place of another machine or container that is gone",
        "cli.session.sessions:take_over",
    ),
    Command(
        "agents",
        "[--json]",
        "all known agents, and which are installed and signed in",
        "cli.agents:agents",
        shell=Form(),
        key=Form(),
    ),
    Command(
        "limits",
        "[--json] [clear AGENT]",
        "which agents rest, why, and until when",
        "cli.limits:LIMITS",
        words=("clear",),
        shell=Form(),
        key=Form(),
    ),
    Command(
        "order",
        "[AGENT…]",
        "show or set the order in which agents take over",
        "cli.agents:order",
        shell=Form(completes="agent"),
        key=Form(),
    ),
    Command(
        "model",
        "[AGENT [MODEL]]",
        "the model an agent is started with",
        "cli.agents:model",
        shell=Form("[MODEL]", "the model of the agent's next turns in this shell; - for its own"),
    ),
    Command(
        "metrics",
        "[SESSION] [--chain|--all] [--by WHAT]",
        "tokens, money, turns and time",
        "cli.metrics:run_metrics",
        takes_words=True,
        shell=Form(),
        key=Form(),
    ),
    Command(
        "watch",
        "[SESSION] [--all] [--json] [--no-follow]",
        "watch sessions live",
        "watch.command:watch",
        shell=Form(completes="session"),
    ),
    Command(
        "export",
        "[--prometheus PORT] [--otlp URL] [--webhook URL]",
        "send figures and events to other systems",
        "export.command:export",
    ),
    Command(
        "proxy",
        "[--json]",
        "show whether the proxy is on, and which agents use it",
        "proxy.command:show_proxy",
    ),
    Command(
        "packet",
        "show|diff|edit|verify|export|import|…",
        "resume packets: what a successor reads",
        "cli.session.packet:PACKET",
        words=("show", "path", "diff", "edit", "verify", "export", "import", "schema", "build"),
        shell=Form(completes="word"),
        key=Form(
            "",
            "what the newest packet says; /packet path | diff | verify",
            more=("/packet edit         edit the newest packet before its successor reads it",),
        ),
    ),
    Command(
        "recall",
        "QUERY [--session S] [--turn N] [--limit 3] [--json]",
        "search what earlier agents of the session were asked, said and did",
        "cli.session.recall:recall",
        shell=Form(
            "QUERY | --turn N",
            "search what earlier agents of this session were asked, said and did",
        ),
        key=Form("QUERY", "search what was asked, said and done in this session; /recall --turn N"),
    ),
    Command(
        "mcp",
        "[install|uninstall|status]",
        "serve an agent the tools for its own session, over MCP",
        "mcp.command:run_mcp",
        takes_words=True,
    ),
    Command("log", key=Form("", "what happened in this session", outside="agent-relay watch --no-follow")),
    Command("replay", "RECORDING --agent A", "run the detector on a recorded session", "cli.replay:replay"),
    Command(
        "adapters",
        "list|trust",
        "where agents' adapters come from; trust a project's",
        "cli.agents:ADAPTERS",
        words=("list", "trust"),
    ),
    Command(
        "hooks",
        "install|uninstall|status [AGENT…]",
        "detect limits of agents that you start without relay",
        "hooks.command:HOOKS",
        words=("install", "uninstall", "status"),
    ),
    Command("init", "", "prepare this repository and the configuration", "cli.installation:init"),
    Command("doctor", "[--json]", "check the installation", "cli.doctor:doctor", key=Form()),
    Command("demo", "[--fast]", "a real handoff between two scripted agents, no account", "cli.demo:demo"),
    Command(
        "daemon",
        "start|stop|restart|status|logs",
        "the process that owns the sessions",
        "cli.installation:DAEMON",
        words=("start", "stop", "restart", "status", "logs"),
    ),
    Command(
        "help",
        shell=Form("[COMMAND]", "what can be typed here", outside="agent-relay --help", completes="command"),
    ),
    Command(
        "exit",
        shell=Form(
            "",
            "leave; a running turn goes on, and unsent messages are kept for the next shell",
            outside="Ctrl-D",
        ),
    ),
    Command("detach", key=Form("", "leave; the agent keeps working")),
)

COMMANDS = {command.name: command for command in _TABLE if command.place}
"""The commands of the command line by name, in the order of the help."""
SHELL_COMMANDS = {command.name: command for command in _TABLE if command.shell is not None}
"""The commands of the relay shell by name, in the order of its help."""
KEY_COMMANDS = {command.name: command for command in _TABLE if command.key is not None}
"""The commands behind the relay key by name, in the order of its help."""

AGENT_USAGE = (
    "AGENT [TASK] [--session ID | --new] [--from AGENT[:ID]] [--focus TEXT] [--model M]"
    " [--expect TEXT] [--priority P] [--rollback AGENT] [--digest] [--no-launch] [--yes] [-- ARGS…]"
)
