"""Name commands, limits and usage windows as messages do; this imports nothing, for hot commands."""

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
        "hooks",
        "init",
        "limits",
        "mcp",
        "metrics",
        "model",
        "order",
        "packet",
        "proxy",
        "race",
        "recall",
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
"""A test holds this against the table of `faces.cli.commands`, which no room below it may import."""


def agent_command(agent: str, *words: str) -> str:
    """Return the command that starts, continues or hands over to `agent`, even if its name is reserved.

    `words` follow it: options and their values, which need no quotes in a shell.
    """
    name = f"agent {agent}" if agent in COMMAND_NAMES else agent
    return " ".join(("agent-relay", name, *words))


def continue_command(agent: str, session: str, *words: str) -> str:
    """Return the command that continues `session` under `agent`, from any folder."""
    return agent_command(agent, "--session", session, *words)


def name_lane(*, resumes: bool, why: str) -> str:
    """Return how a successor learned what it took over: `read the packet: it had no conversation here`.

    `why` is as in its leg's `lane_why`.
    """
    how = "resumed its own conversation with what changed" if resumes else "read the packet"
    return f"{how}: {why}" if why else how


_WAYS = {
    "program": "a program without a terminal",
    "agent": "an agent's command",
    "mcp": "an agent's tool",
}


def name_asker(user: str, via: str) -> str:
    """Return who asked for something, and how: `dan (terminal)`; empty if nobody is known."""
    way = f"({_WAYS.get(via, via)})" if via else ""
    return " ".join(part for part in (user, way) if part)


def retry_command(handoff: str, *words: str) -> str:
    """Return the command that resumes the handoff where it stopped."""
    return " ".join(("agent-relay handoff retry", handoff, *words))


_HIT = {
    "model": "the limit of its model",
    "account": "its usage limit",
    "billing": "its credit limit",
    "budget": "its budget",
}
_REST = {
    "model": "model limit",
    "account": "usage limit",
    "billing": "credit limit",
    "budget": "budget",
}
_HOUR = 60
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY
_LONGEST_NAME = 40
_MOST_WORDS = 3
_STOPS = ".,:;!?)'"


def name_limit(scope: str, model: str = "", text: str = "") -> str:
    """Return how a sentence names a limit: in its agent's words if `text` has them, else by its scope.

    `claude hit its session limit`, `the limit of MODEL`.
    """
    if named := _find_named(text):
        return f"its {named}"
    return f"the limit of {model}" if scope == "model" and model else _HIT.get(scope, "a limit")


def _find_named(text: str) -> str:
    """Return the name in `your session limit`, of up to three words before `limit`; empty for none."""
    for rest in text.split("your ")[1:]:
        words = rest.split(" ", _MOST_WORDS + 1)[: _MOST_WORDS + 1]
        last = next((at for at, word in enumerate(words) if word.rstrip(_STOPS) == "limit"), 0)
        if last and all(_is_name(word) for word in words[:last]):
            return " ".join([*words[:last], "limit"])
    return ""


def _is_name(word: str) -> bool:
    return len(word) <= _LONGEST_NAME and word.replace("-", "").replace(".", "").replace("_", "").isalnum()


def name_rest(scope: str, model: str = "") -> str:
    """Return why an agent rests, for brackets and tables: `usage limit`, or `limit of MODEL`."""
    return f"limit of {model}" if scope == "model" and model else _REST.get(scope, "limit")


_SOURCES = {
    "status-line": "its status line",
    "transcript": "its transcript",
    "stream": "its output",
    "proxy": "the proxy",
}


def name_source(source: str) -> str:
    """Return where an agent said something, after `from`: `its status line`."""
    return _SOURCES.get(source, f"its {source.replace('-', ' ')}")


def name_window(name: str, minutes: int, model: str = "") -> str:
    """Return what people call a usage window: `5 h`, `week`, `week of Opus`; with 0 `minutes` its `name`."""
    return f"{_name_span(name, minutes)} of {model}" if model else _name_span(name, minutes)


def _name_span(name: str, minutes: int) -> str:
    if minutes <= 0:
        return name[:_LONGEST_NAME].replace("_", " ")
    if minutes == _WEEK:
        return "week"
    if minutes % _DAY == 0:
        return f"{minutes // _DAY} d" if minutes > _DAY else "day"
    return f"{minutes // _HOUR} h" if minutes % _HOUR == 0 else f"{minutes} min"


def describe_window(name: str, minutes: int) -> str:
    """Return the same for the middle of a sentence: `5-hour window`, `weekly window`."""
    if minutes <= 0:
        return f"{name_window(name, 0)} window"
    if minutes == _WEEK:
        return "weekly window"
    if minutes % _DAY == 0:
        return f"{minutes // _DAY}-day window" if minutes > _DAY else "daily window"
    return f"{minutes // _HOUR}-hour window" if minutes % _HOUR == 0 else f"{minutes}-minute window"
