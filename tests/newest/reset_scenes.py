"""What becomes of the work at a reset that is played in full; as the other scenes, by `make newest` only."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from agent_relay.agents.adapters import load_rules
from agent_relay.domain.events.session import SessionWoke
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.state import State
from agent_relay.system.disk.folders import get_folders
from tests.newest.scenes import OTHER, TASK, begin
from tests.support.provider.steps import refuse, say
from tests.support.real import World, open_world
from tests.support.real_launch import AGENTS, get_adapter
from tests.support.real_terminal import Terminal, WaitedError
from tests.support.real_work import (
    describe,
    find_agents,
    order,
    read_all_events,
    read_work,
    type_line,
    wait_heard,
    wait_taken_over,
    wait_work,
)

RESET_S = 75
LATE_S = 110
"""The prompt of its own has come 62 to 92 s after the reset."""
BY_ITSELF = "will continue by itself at"
BY_NOBODY = "Work will not continue automatically"


@dataclass(frozen=True)
class Evening:
    """One world in which the agent met its limit a moment ago; its reset is at `reset_s` (monotonic)."""

    name: str
    world: World
    terminal: Terminal
    reset_s: float


@pytest.mark.parametrize("agent", AGENTS)
def test_reset(agent: str) -> None:
    """One of the two goes on after a rest, and nobody where the user said no or the work is elsewhere."""
    if not load_rules(get_adapter(agent)).continues.rules:
        pytest.skip(reason="it never goes on by itself")
    with ExitStack() as worlds:
        handed = _begin_evening(worlds, agent, "handed over", others=(OTHER,))
        left = _begin_evening(worlds, agent, "left to it")
        never = _begin_evening(worlds, agent, "never", config="resume_at_reset = false\n")
        quiet = _begin_evening(worlds, agent, "quiet hours", later='quiet_hours = "always"\n')
        wait_taken_over(handed.world, handed.terminal, OTHER)
        for evening, plan in ((left, BY_ITSELF), (never, BY_NOBODY), (quiet, BY_NOBODY)):
            wait_work(evening.world, evening.terminal, lambda found: found.state is State.RESTING, "the rest")
            evening.terminal.wait_for(plan)
        evenings = (handed, left, never, quiet)
        for _ in _pass_until(evenings, quiet.reset_s + LATE_S):
            _check_owners(evenings, agent)
        wait_heard(left.world, left.terminal, agent, 3)
        wait_work(left.world, left.terminal, lambda found: found.state is State.READY, "the turn's end")
        _check_owners(evenings, agent)
        _check_end(evenings, agent)


def _begin_evening(
    worlds: ExitStack,
    agent: str,
    name: str,
    *,
    others: tuple[str, ...] = (),
    config: str = "",
    later: str = "",
) -> Evening:
    """The agent met its limit; `config` was written before it began to work, `later` after that."""
    world = worlds.enter_context(open_world())
    order(world, agent, *others, only=True)
    _configure(world, config)
    limit = refuse("claude-limit", reset_s=RESET_S, times=1)
    terminal = begin(world, agent, say("The first answer."), limit, say("On with it."), say("And on."))
    terminal.wait_for("The first answer")
    terminal.wait_quiet()
    _configure(world, later)
    type_line(terminal, "go on")
    wait_heard(world, terminal, agent, 2)
    return Evening(name, world, terminal, time.monotonic() + RESET_S)


def _configure(world: World, line: str) -> None:
    with open(f"{get_folders(world.env()).config}/config.toml", "a", encoding="utf-8") as file:
        file.write(line)


def _pass_until(evenings: tuple[Evening, ...], until_s: float) -> Iterator[None]:
    """A look for every second until then, the terminals read meanwhile as people's would be."""
    while time.monotonic() < until_s:
        for evening in evenings:
            evening.terminal.pump(1 / len(evenings))
        yield


def _check_owners(evenings: tuple[Evening, ...], agent: str) -> None:
    for evening in evenings:
        world = evening.world
        living = [line for line in find_agents(world) if f"/{agent}" in line]
        is_gone = evening.name == "handed over"
        asked = len(world.requests(agent))
        is_right = len(living) == (0 if is_gone else 1) and asked <= (
            3 if evening.name == "left to it" else 2
        )
        if not is_right:
            raise WaitedError(
                f"{evening.name}: {asked} requests of {agent}, {len(living)} of it alive; the screen:\n"
                f"{evening.terminal.screen}\n{describe(world)}"
            )


def _check_end(evenings: tuple[Evening, ...], agent: str) -> None:
    woke = {}
    for evening in evenings:
        bodies = [event.body for event in read_all_events(evening.world)]
        begun = [one for one in bodies if isinstance(one, HandoffBegun)]
        assert len(begun) == (1 if evening.name == "handed over" else 0), evening.name
        woke[evening.name] = [one.why for one in bodies if isinstance(one, SessionWoke)][-1:]
    assert woke == {
        "handed over": [],
        "left to it": [f"{agent} went on by itself"],
        "never": ["its limit has reset"],
        "quiet hours": ["its limit has reset"],
    }
    assert read_work(evenings[0].world).agent == OTHER
    assert TASK in str(evenings[1].world.requests(agent)[-1]["text"])
