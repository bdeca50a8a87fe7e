"""What tests say to a session of real agents, and where they look for what relay made of it."""

import functools
import glob
import json
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator

from agent_relay.client.connection import find_daemon_pid
from agent_relay.domain.events.session import Event
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events
from agent_relay.system.disk.folders import get_folders
from tests.support import real_seeds
from tests.support.provider.steps import refuse
from tests.support.real import World
from tests.support.real_launch import AGENTS, PROMPTS
from tests.support.real_terminal import Terminal, WaitedError
from tests.support.relay_world import wait_until

LIMITS = {
    "claude": refuse("claude-limit"),
    "codex": refuse("codex-limit"),
    "gemini": refuse("gemini-quota"),
    "opencode": refuse("openai-busy", retry_after_s=3600),
}


def order(world: World, *first: str, only: bool = False) -> None:
    """These are asked first, in this order, and with `only` nobody else."""
    rest = [] if only else [agent for agent in AGENTS if agent not in first]
    done = world.run(world.relay("order", *first, *rest))
    assert done.returncode == 0, done.stderr


def distrust(world: World, agent: str) -> None:
    """The user never told `agent` that this folder may be trusted: it asks before anything else."""
    match agent:
        case "claude":
            with open(f"{world.home}/.claude.json", encoding="utf-8") as file:
                known = json.load(file)
            real_seeds.write_json(f"{world.home}/.claude.json", known | {"projects": {}})
        case "codex":
            path = f"{world.home}/.codex/config.toml"
            with open(path, encoding="utf-8") as file:
                lines = [line for line in file if not line.startswith(("[projects.", "trust_level"))]
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines)
        case _:
            os.unlink(f"{world.home}/.gemini/trustedFolders.json")


def wait_prompt(terminal: Terminal, agent: str) -> None:
    """The agent shows its prompt and has finished painting it."""
    terminal.wait_for(PROMPTS[agent])
    terminal.wait_quiet(0.5)


def type_line(terminal: Terminal, text: str) -> None:
    """A person types `text` and, once it stands there, presses Enter."""
    terminal.send(text)
    terminal.wait_typed(text)
    terminal.send("\r")


def find_journals(world: World) -> list[str]:
    """The journals of the project's sessions, oldest first."""
    return sorted(glob.glob(f"{world.project}/.agent-relay/sessions/*/journal.jsonl"))


def read_journal(path: str) -> tuple[list[Event], Session | None]:
    """A journal and the session it tells of, read anew when it has grown."""
    found = os.stat(path)
    return _read_journal(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _read_journal(path: str, _size: int, _changed_ns: int) -> tuple[list[Event], Session | None]:
    events = read_events(path)
    return events, fold_events(events)


def read_all_events(world: World) -> list[Event]:
    """The journal of the project's one session."""
    (journal,) = find_journals(world)
    return read_journal(journal)[0]


def read_work(world: World) -> Session:
    """The project's one session, as its journal tells it."""
    (journal,) = find_journals(world)
    _, session = read_journal(journal)
    assert session is not None
    return session


def wait_work(world: World, terminal: Terminal, is_so: Callable[[Session], bool], what: str) -> Session:
    """The session once `is_so`; the terminal is read meanwhile, as a person's would be."""

    def is_told() -> bool:
        found = [session for _, session in map(read_journal, find_journals(world))]
        return bool(found) and found[0] is not None and is_so(found[0])

    try:
        terminal.wait_until(is_told, what)
    except WaitedError as error:
        raise WaitedError(f"{error}\n{describe(world)}") from None
    return read_work(world)


def wait_taken_over(world: World, terminal: Terminal, agent: str) -> Session:
    """The session once `agent` took its packet, worked on it and waits for the next prompt."""
    return wait_work(
        world,
        terminal,
        lambda found: found.agent == agent and found.handoff is None and found.state is State.READY,
        f"{agent} to have taken over",
    )


def wait_heard(world: World, terminal: Terminal, agent: str, count: int = 1) -> str:
    """The words of the `count`-th request of `agent`'s conversation, once it came."""
    try:
        terminal.wait_until(
            lambda: len(world.requests(agent)) >= count,
            f"request {count} of {agent}",
        )
    except WaitedError as error:
        raise WaitedError(f"{error}\n{describe(world)}") from None
    return str(world.requests(agent)[count - 1]["text"])


def find_agents(world: World) -> list[str]:
    """The command lines of living agents."""
    names = tuple(f"/{agent}" for agent in AGENTS)
    return [line for line in world.find_processes().values() if any(name in line for name in names)]


def wait_no_agents(world: World) -> None:
    """No agent lives: one that was killed is gone as soon as the kernel has a moment for it."""
    wait_until(lambda: not find_agents(world), f"{find_agents(world)} to be gone", limit_s=60)


def read_allowed(
    world: World, done: subprocess.CompletedProcess[str], schema: dict[str, object]
) -> list[dict[str, Any]]:
    """The events printed, each of which the published `schema` allows."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    allowed = Draft202012Validator(schema)
    for line in lines:
        allowed.validate(line)
    assert lines, f"{done.stderr}\n{describe(world)}"
    return lines


def describe(world: World) -> str:
    """What relay knew, for whoever reads a failure: journals, the daemon's log, the legs' evidence."""
    state = world.env()["AGENT_RELAY_HOME"]
    paths = [*find_journals(world), f"{state}/state/daemon.log", *glob.glob(f"{state}/run/legs/*/*.jsonl")]
    parts = []
    for path in [*paths, *glob.glob(f"{state}/state/crashes/*")]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line[:400].rstrip() for line in file.readlines()[-25:]]
        except OSError as error:
            lines = [str(error)]
        parts += [f"-- {path}", *lines]
    return "\n".join(parts)


def find_daemon(world: World) -> int:
    """The pid of the world's daemon; 0 where none runs."""
    return find_daemon_pid(get_folders(world.env())) or 0


def kill_daemon(world: World) -> None:
    """The daemon is gone without a chance to tidy up."""
    daemon = find_daemon(world)
    assert daemon, "no daemon is running"
    os.kill(daemon, signal.SIGKILL)
