"""What the relay prompt inside an agent's screen does: a line in, lines to show out."""

import os

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.logic.counts import render_count
from agent_relay.logic.limit_names import name_scope
from agent_relay.logic.reasons import quote_reason
from agent_relay.system.glances import read_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.client.attach_prompt import Waiting
    from agent_relay.client.connection import Connection

ASK_LIMIT_S = 30.0

HELP = (
    "/use AGENT [FOCUS]   hand over to AGENT, which should look at FOCUS first",
    "/use AGENT --focus TEXT --model M --task TEXT --expect TEXT …   the same, as agent-relay AGENT takes it",
    "/handoff [FOCUS]     hand over to the next agent of the order, with a document this one writes first",
    "/handoff list | show ID | history | plan | retry ID | cancel ID | complete ID | fail ID",
    "/packet              what the newest packet says; /packet path | diff | verify",
    "/status              this session in short",
    "/limits  /sessions  /agents  /order [AGENT…]  /metrics   as the commands of that name",
    "/stop                end the session and its agent",
    "/detach              leave; the agent keeps working",
)
RECORDS = ("list", "show", "history", "plan", "retry", "cancel", "complete", "fail")
_PLAIN = frozenset(("agents", "handoff", "limits", "metrics", "order", "packet", "sessions", "status"))
_OF_SESSION = frozenset(
    (
        ("handoff", "history"),
        ("packet", "show"),
        ("packet", "path"),
        ("packet", "diff"),
        ("packet", "verify"),
        ("packet", "export"),
    )
)
_ELSEWHERE = frozenset(("--new", "--session", "--from", "--json", "--help", "-h"))


def obey(
    line: str, *, session: str, folder: str, connect: "Callable[[], Connection]", size: tuple[int, int]
) -> "tuple[str, ...] | Waiting":
    """The lines to show for one line typed behind the relay key, or what they will come of.

    None where the agent's screen says it all. `size` is the terminal's rows and columns. Raises RelayError
    where it cannot be done.
    """
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if word == "/status" and not rest:
        return describe(session, folder)
    if word in {"/help", "/?", "help", "?"}:
        return HELP
    if word == "/use":
        return _use(rest, session=session, folder=folder, connect=connect, size=size)
    if word == "/handoff" and rest.partition(" ")[0] not in RECORDS:
        from agent_relay.client.narration import Narration

        return Narration(connect, session=session, focus=rest)
    if word == "/stop":
        return _request(connect, "session.stop", session=session)
    words = find_plain(word, rest, session)
    if not words:
        raise WrongUseError(f"relay does not know {word[:40]!r}", hint="Try /help")
    from agent_relay.client.plain_command import PlainCommand

    return PlainCommand(words, folder=_find_root(folder))


def find_plain(word: str, rest: str, session: str) -> tuple[str, ...]:
    """The plain command that answers `word`, about this session unless another is named; empty for none.

    Raises WrongUseError for a quote without its end.
    """
    name = word.removeprefix("/")
    if name == word or name not in _PLAIN or name not in COMMANDS:
        return ()
    words = split_words(rest)
    if name == "packet" and words[:1] == ["edit"]:
        raise WrongUseError("an editor needs a terminal of its own", hint="There: agent-relay packet edit")
    return (name, *_add_session(name, words, session))


def _add_session(name: str, words: list[str], session: str) -> list[str]:
    if name == "metrics" and "--all" not in words and (not words or words[0].startswith("-")):
        return [session, *words]
    if name == "packet" and not words:
        return ["show", session]
    if name == "handoff" and words[:1] == ["plan"] and "--session" not in words:
        return [*words, "--session", session]
    if words and (name, words[0]) in _OF_SESSION and (len(words) == 1 or words[1].startswith("-")):
        return [words[0], session, *words[1:]]
    return words


def split_words(text: str) -> list[str]:
    """The words as a shell divides them. Raises WrongUseError for a quote without its end."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        raise WrongUseError(f"a quote has no end in {text[:40]!r}", hint="Close it") from None


def _use(
    rest: str, *, session: str, folder: str, connect: "Callable[[], Connection]", size: tuple[int, int]
) -> tuple[str, ...]:
    agent, _, focus = rest.partition(" ")
    if not agent or agent.startswith("-"):
        raise WrongUseError("/use needs an agent", hint="/use AGENT [FOCUS]")
    focus = focus.strip()
    if not focus.startswith("--"):
        return _request(connect, "use", session=session, agent=agent, focus=focus)
    from agent_relay.faces.cli.wish_words import OPEN_LIMIT_S, parse_words

    words = split_words(focus)
    own = words[: words.index("--")] if "--" in words else words
    for word in own:
        if word.partition("=")[0] in _ELSEWHERE:
            raise WrongUseError(f"/use does not take {word[:40]!r}", hint="In another terminal: agent-relay")
    wish = parse_words(words)
    view = _read(session, folder)
    if view["agent"] == agent and not wish.get("no_launch"):
        raise WrongUseError(f"{agent} is at work here already", hint="Name another agent")
    rows, cols = size
    fields = {"cwd": _find_root(folder), "env": dict(os.environ), "rows": rows, "cols": cols, **wish}
    with connect() as connection:
        answer = connection.request("open", limit_s=OPEN_LIMIT_S, agent=agent, session=session, **fields)
    return (str(answer.get("message") or ""),) if wish.get("no_launch") else ()


def _request(connect: "Callable[[], Connection]", op: str, **fields: str) -> tuple[str, ...]:
    with connect() as connection:
        connection.request(op, limit_s=ASK_LIMIT_S, **fields)
    return ()


def describe(session: str, folder: str) -> tuple[str, ...]:
    """The session in short, its state first."""
    view = _read(session, folder)
    made = render_count(int(str(view["handoffs"])), "handoff")
    lines = [f"session {session}: {view['state']} under {view['agent']}, {made}"]
    if view["task"] or view["title"]:
        lines.append(f"task: {view['task']}" if view["task"] else f"first prompt: {view['title']}")
    limit = view["limit"]
    if isinstance(limit, dict):
        said = quote_reason(str(limit["text"]))
        lines.append(f"last limit: {limit['agent']} hit {name_scope(str(limit['scope']))} ({said})")
    refused = view["refused"]
    if isinstance(refused, dict):
        lines.append(
            f"{refused['agent']} is signed out, or its key refused: {quote_reason(str(refused['text']))}"
        )
    if view["offered"]:
        lines.append(f"{view['offered']} is available again: /use {view['offered']}")
    if view["packet"]:
        lines.append(f"newest packet: {folder}/{view['packet']}")
    return tuple(lines)


def _find_root(folder: str) -> str:
    """The folder that holds `.agent-relay`, of a session's own folder."""
    return os.path.dirname(os.path.dirname(os.path.dirname(folder)))


def _read(session: str, folder: str) -> "dict[str, object]":
    return read_session(_find_root(folder), session)
