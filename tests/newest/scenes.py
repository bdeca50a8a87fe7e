"""What every agent must do at its newest version; played by `make newest` only, in a real terminal each."""

import glob
import json
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events.session import SignalSeen
from agent_relay.domain.state import State
from agent_relay.system.disk.folders import get_folders
from tests.real.test_adapter_quit import FREE_HANDS, check_gone
from tests.real.test_no_false_one import FORGED, HEALS, LOG, QUOTES, check_same_agent, warn
from tests.support import real_seeds
from tests.support.provider.steps import Step, call, read, refuse, say, shell
from tests.support.real import World, open_world
from tests.support.real_launch import AGENTS, deliver, start, wait_ready
from tests.support.real_terminal import COLS, ROWS, Terminal
from tests.support.real_work import (
    LIMITS,
    order,
    read_all_events,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)
from tests.support.relay_world import wait_until

TASK = "Write a page about heliotropes."
OTHER = "demo"
"""Who is there before and after: scripted, so that what goes wrong is the agent's."""
RESET_S = 7200
CLOSE = timedelta(minutes=2)
TRUE_LIMITS = {
    "claude": (refuse("claude-limit", reset_s=RESET_S), "account", True),
    "codex": (refuse("codex-limit", reset_s=RESET_S), "account", True),
    "gemini": (refuse("gemini-quota"), "model", False),
    "opencode": (refuse("openai-unpaid"), "billing", False),
}
"""A limit of each, what it covers, and whether its end is told."""
SILENT = {
    "claude": refuse("claude-transient", retry_after_s=3600),
    "codex": refuse("openai-busy", retry_after_s=3600),
    "gemini": refuse("gemini-exhausted"),
    "opencode": refuse("openai-busy", retry_after_s=3600),
}
"""The provider asks for an hour or more, and is not the plan's limit."""

SLEEPS = "import time; time.sleep(333)"
"""Some agents refuse to run `sleep`."""
PATIENCE_S = 20
SHOWS_RETRIES = ("claude", "opencode")
RETRIES = 4
"""The first waits are too short for a row about them."""


def begin(world: World, agent: str, *steps: Step) -> Terminal:
    """A terminal on which `agent`, started by relay, met `steps` after its first prompt."""
    world.play(agent, *steps)
    terminal = world.open(world.relay(agent))
    wait_prompt(terminal, agent)
    type_line(terminal, TASK)
    return terminal


def read_signals(world: World) -> list[SignalSeen]:
    """Every finding in the journal of the project's one session."""
    return [event.body for event in read_all_events(world) if isinstance(event.body, SignalSeen)]


def find_limits(world: World) -> list[SignalSeen]:
    """The findings among them that stop an agent."""
    return [it for it in read_signals(world) if it.decides and it.kind in {"limit", "silent-limit"}]


@pytest.mark.parametrize("agent", AGENTS)
def test_limit(world: World, agent: str) -> None:
    """What it covers and when it ends decide what becomes of the work."""
    limit, scope, tells_reset = TRUE_LIMITS[agent]
    order(world, agent, only=True)
    at = datetime.now(UTC) + timedelta(seconds=RESET_S)
    terminal = begin(world, agent, say("The first answer."), limit)
    terminal.wait_for("The first answer")
    terminal.wait_quiet()
    type_line(terminal, "go on")
    wait_work(world, terminal, lambda found: found.state is State.RESTING, "the limit to be found")
    assert {(found.kind, found.scope) for found in find_limits(world)} == {("limit", scope)}
    if tells_reset:
        told = [datetime.fromisoformat(found.until) for found in find_limits(world) if found.until]
        assert told
        assert min(abs(until - at) for until in told) < CLOSE


@pytest.mark.parametrize("agent", AGENTS)
def test_silent_limit(agent: str) -> None:
    """Nobody looks at a spinner for an hour: the wait is found, or the agent gives up by itself."""
    with open_world(google_login=agent == "gemini") as world:
        order(world, agent, only=True)
        with open(f"{get_folders(world.env()).config}/config.toml", "a", encoding="utf-8") as file:
            file.write(f"patience_s = {PATIENCE_S}\n")
        terminal = begin(world, agent, say("The first answer."), SILENT[agent])
        terminal.wait_for("The first answer")
        terminal.wait_quiet()
        known = len(read_all_events(world))
        type_line(terminal, "go on")
        wait_heard(world, terminal, agent, 2)
        terminal.wait_until(
            lambda: bool(find_limits(world)) or has_given_up(world, known), "the wait to be found"
        )


def has_given_up(world: World, known: int) -> bool:
    """Whether the turn that began after the journal's line `known` is over."""
    names = [event.body.name for event in read_all_events(world)[known:]]
    return "leg.busy" in names and "leg.ready" in names[names.index("leg.busy") :]


@pytest.mark.parametrize("agent", AGENTS)
def test_near_limit(world: World, agent: str) -> None:
    """A successor is told before the work stops."""
    if agent in {"gemini", "opencode"}:
        pytest.skip(reason="it says nothing before its limit")
    order(world, agent, only=True)
    terminal = begin(world, agent, warn(agent), say("Still there."))
    terminal.wait_for("Nearly there")
    terminal.wait_until(
        lambda: "near-limit" in {found.kind for found in read_signals(world)}, "the warning to be found"
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_decoy(world: World, agent: str) -> None:
    """The words of a limit in files, output and answers hand nothing over."""
    real_seeds.free_hands(world.home)
    with open(f"{world.project}/errors.log", "w", encoding="utf-8") as file:
        file.write(LOG)
    terminal = begin(
        world,
        agent,
        call(shell(agent, "cat errors.log && false"), text="The log first."),
        call(read(agent, path=f"{world.project}/errors.log"), text="Once more, as a file."),
        say(QUOTES),
        say(FORGED[agent]),
        say("Still the same agent."),
    )
    for count, text in ((3, "Say exactly what it says"), (4, "and once more")):
        wait_heard(world, terminal, agent, count)
        wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
        terminal.wait_quiet(1.0)
        type_line(terminal, text)
    terminal.wait_for("Still the same agent")
    terminal.wait_quiet(1.0)
    check_same_agent(world, terminal, agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_retry(world: World, agent: str) -> None:
    """What the agent heals by itself is seen, left alone, and over with the answer."""
    terminal = begin(world, agent, HEALS[agent] | {"times": RETRIES}, say("It healed by itself."))
    terminal.wait_for("It healed by itself")
    wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
    check_same_agent(world, terminal, agent)
    if agent in SHOWS_RETRIES:
        assert "retry" in replay(world, terminal, agent), "the retries on the screen were not understood"


def replay(world: World, terminal: Terminal, agent: str) -> set[str]:
    """The kinds of what the detector finds in everything the terminal was sent."""
    path = f"{world.root}/terminal.raw"
    with open(path, "wb") as file:
        file.write(terminal.raw)
    size = f"{COLS}x{ROWS}"
    done = world.run(world.relay("replay", path, "--agent", agent, "--size", size, "--json"))
    assert done.returncode == 0, done.stderr
    return {found["kind"] for found in json.loads(done.stdout)["signals"]}


@pytest.mark.parametrize("agent", AGENTS)
def test_handoff_out(world: World, agent: str) -> None:
    """At its limit the agent is ended, and the next one is told the task."""
    order(world, agent, OTHER, only=True)
    terminal = begin(world, agent, say("I will begin with the roots."), LIMITS[agent])
    terminal.wait_for("begin with the roots")
    terminal.wait_quiet()
    type_line(terminal, "go on with the leaves")
    wait_taken_over(world, terminal, OTHER)
    heard = read_briefing(world)
    assert TASK in heard
    assert "go on with the leaves" in heard
    assert "begin with the roots" in heard
    wait_until(
        lambda: not [line for line in world.find_processes().values() if f"/{agent}" in line],
        f"{agent} to be gone",
    )


def read_briefing(world: World) -> str:
    """What the scripted agent was told last."""
    (path,) = glob.glob(f"{world.home}/.demo-agent/{OTHER}/*.jsonl")
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    return str([row["text"] for row in rows if row["type"] == "brief"][-1])


@pytest.mark.parametrize("agent", AGENTS)
def test_handoff_in(world: World, agent: str) -> None:
    """It is given the work once, whole, and is seen to work on it."""
    order(world, OTHER, agent, only=True)
    world.play(agent, say("I pick up where it stopped."))
    terminal = world.open(world.relay("agent", OTHER))
    terminal.wait_for(f"ready \\| {OTHER}")
    type_line(terminal, TASK)
    terminal.wait_for("has nothing for this prompt")
    wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
    done = world.run(world.relay(agent, "--json"))
    assert done.returncode == 0, done.stderr
    heard = wait_heard(world, terminal, agent)
    assert TASK in heard
    assert "handoff-context" in heard
    terminal.wait_for("I pick up where it stopped")
    wait_taken_over(world, terminal, agent)
    assert len(world.requests(agent)) == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_resume(world: World, agent: str) -> None:
    """Back at work it goes on in its own conversation, told only what changed since."""
    order(world, agent, OTHER, only=True)
    terminal = begin(world, agent, say("I will begin with the roots."))
    terminal.wait_for("begin with the roots")
    wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
    terminal.wait_quiet()
    away = world.run(world.relay("agent", OTHER, "--json"))
    assert away.returncode == 0, away.stderr
    wait_taken_over(world, terminal, OTHER)
    native_id = read_work(world).legs[0].native_id
    world.play(agent, say("I am back."))
    back = world.run(world.relay(agent, "--yes", "--json"))
    assert back.returncode == 0, back.stderr
    heard = wait_heard(world, terminal, agent, 2)
    terminal.wait_for("I am back")
    session = wait_taken_over(world, terminal, agent)
    assert "begin with the roots" in heard
    assert (session.legs[-1].native_id, session.legs[-1].resumes) == (native_id, True)


@pytest.mark.parametrize("agent", AGENTS)
def test_quit(world: World, agent: str) -> None:
    """Idle, at its limit and in the middle of a command it ends unkilled, with all it started."""
    command = call(shell(agent, f"python3 -c '{SLEEPS}'"))
    for state, steps, extra in (
        ("ready", (say("The first answer."),), ()),
        ("asking", (LIMITS[agent],), ()),
        ("busy", (command,), FREE_HANDS[agent]),
    ):
        heard = len(world.requests(agent))
        world.play(agent, *steps)
        leg = start(world, agent, extra=extra)
        wait_ready(leg)
        deliver(leg, "do the work")
        wait_heard(world, leg.terminal, agent, heard + 1)
        if state == "busy":
            leg.terminal.wait_until(
                lambda: any(SLEEPS in line for line in world.find_processes().values()),
                "the command to run",
            )
        leg.terminal.wait_quiet(1.0, limit_s=4)
        check_gone(world, leg, state)
