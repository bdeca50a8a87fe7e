"""A pasted megabyte costs the daemon's other sessions nothing: what takes long is done beside the loop."""

from collections.abc import Callable

import pytest

from agent_relay.domain.events.work import TurnBegun, TurnEnded
from agent_relay.domain.state import State
from tests.support.chats import AGREES, chat_world
from tests.support.relay_world import RelayWorld

pytestmark = pytest.mark.size("test")

_LENGTH = 900_000
_KINDS = {
    "letters": "x" * _LENGTH,
    "words": "some words to read " * (_LENGTH // 19),
    "settings": "key=value " * (_LENGTH // 10),
}
_TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyzabcdefgh9X"
_MOST_TIMES = 6
"""A megabyte is read and written, too; searched in the loop it took 16 to 37 times as long as a word."""


def _read_loop_s(world: RelayWorld) -> float:
    """How long the daemon's event loop has had a processor: nobody else is answered meanwhile."""
    pid = world.daemons[-1].pid
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def _wait_over(world: RelayWorld, session: str) -> None:
    world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")


def _take_turn(world: RelayWorld, task: str) -> str:
    """The session of a turn that is over."""
    wish = {"cwd": world.project, "env": world.environ}
    session = str(world.ask("run.begin", agent="demo", task=task, **wish)["session"])
    _wait_over(world, session)
    return session


def _chat(world: RelayWorld, task: str) -> str:
    """The session of a chat of which one turn is over."""
    agents = ["demo", "understudy"]
    wish = {"cwd": world.project, "env": world.environ, "task": task}
    session = str(world.ask("chat.begin", agents=agents, **wish)["session"])
    _wait_over(world, session)
    return session


def _measure_s(world: RelayWorld, ask: Callable[[RelayWorld, str], str], task: str) -> float:
    """How long the event loop is held by all that `ask` has done for this task."""
    before_s = _read_loop_s(world)
    ask(world, task)
    return _read_loop_s(world) - before_s


@pytest.mark.parametrize("kind", _KINDS)
def test_a_pasted_megabyte_holds_the_daemon_about_as_long_as_a_word(world: RelayWorld, kind: str) -> None:
    """Every session's terminals, limits and handoffs wait for the same loop."""
    _measure_s(world, _take_turn, "warm up")
    small_s = max(_measure_s(world, _take_turn, "hello") for _ in range(2))
    assert _measure_s(world, _take_turn, _KINDS[kind]) < _MOST_TIMES * small_s


@pytest.mark.parametrize("kind", _KINDS)
def test_an_agents_megabyte_holds_the_daemon_about_as_long_as_its_word(kind: str) -> None:
    """Agents quote whole files at each other."""
    scenes = [{"when": "much", "again": True, "do": [{"say": _KINDS[kind]}]}, AGREES]
    with chat_world(scenes, scenes) as world:
        world.start_daemon()
        _measure_s(world, _chat, "warm up")
        small_s = max(_measure_s(world, _chat, "hello") for _ in range(2))
        assert _measure_s(world, _chat, "much") < _MOST_TIMES * small_s
        said = [
            event.body.said
            for session in (_chat(world, "much"),)
            for event in world.events(session)
            if isinstance(event.body, TurnEnded)
        ]
    assert [len(words) > 40_000 for words in said] == [True]


def test_a_megabyte_reaches_the_agent_whole_and_the_journal_without_its_secrets(world: RelayWorld) -> None:
    """A daemon that is killed meanwhile asks the agent what the journal has: nothing else may be missing."""
    words = _KINDS["words"][: _LENGTH // 2]
    prompt = f"{words} {_TOKEN} {words}."
    session = _take_turn(world, prompt)
    leg = world.session(session).legs[-1].id
    with open(f"{world.folders.legs}/{leg}/prompt", encoding="utf-8") as file:
        assert file.read() == prompt
    prompts = [event.body.prompt for event in world.events(session) if isinstance(event.body, TurnBegun)]
    assert prompts == [f"{words} [redacted: github-token] {words}."]
