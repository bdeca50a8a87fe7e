"""A pasted megabyte costs the daemon's other sessions nothing: what takes long is done beside the loop."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_relay.domain.events.work import TurnBegun, TurnEnded
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.chats import AGREES, chat_world
from tests.support.relay_world import RelayWorld

pytestmark = pytest.mark.size("every")

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


def _take_turn(world: RelayWorld, task: str) -> str:
    """The session of a turn that is over."""
    wish = {"cwd": world.project, "env": world.environ}
    session = str(world.ask("run.begin", agent="demo", task=task, **wish)["session"])
    world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    return session


def _chat(world: RelayWorld, task: str) -> str:
    """The session of a chat of which one turn is over."""
    agents = ["demo", "understudy"]
    wish = {"cwd": world.project, "env": world.environ, "task": task}
    session = str(world.ask("chat.begin", agents=agents, **wish)["session"])
    world.wait_for(session, lambda found: found.state is State.ENDED, "the turn is over")
    return session


def _measure_s(world: RelayWorld, ask: Callable[[RelayWorld, str], str], task: str) -> float:
    """How long the event loop is held by all that `ask` has done for this task."""
    before_s = _read_loop_s(world)
    ask(world, task)
    return _read_loop_s(world) - before_s


def _list_slow(
    world: RelayWorld, ask: Callable[[RelayWorld, str], str], tasks: Mapping[str, str]
) -> list[str]:
    """What is too slow: those of the tasks that hold the loop longer than a few words do."""
    _measure_s(world, ask, "warm up")
    small_s = max(_measure_s(world, ask, "hello") for _ in range(2))
    took_s = {kind: _measure_s(world, ask, task) for kind, task in tasks.items()}
    return [f"{kind}: {s:g} s, not {small_s:g} s" for kind, s in took_s.items() if s >= _MOST_TIMES * small_s]


def test_a_pasted_megabyte_holds_the_daemon_about_as_long_as_a_word(world: WorkingWorld) -> None:
    """Every session's terminals, limits and handoffs wait for the same loop."""
    world.start_daemon()
    assert _list_slow(world, _take_turn, _KINDS) == []


def test_an_agents_megabyte_holds_the_daemon_about_as_long_as_its_word() -> None:
    """Agents quote whole files at each other."""
    much = [{"when": kind, "again": True, "do": [{"say": text}]} for kind, text in _KINDS.items()]
    with chat_world([*much, AGREES], [*much, AGREES]) as world:
        assert _list_slow(world, _chat, {kind: kind for kind in _KINDS}) == []
        events = [event for kind in _KINDS for event in world.events(_chat(world, kind))]
    said = [event.body.said for event in events if isinstance(event.body, TurnEnded)]
    assert [len(words) > 40_000 for words in said] == [True] * len(_KINDS)


def test_a_megabyte_reaches_the_agent_whole_and_the_journal_without_its_secrets(world: WorkingWorld) -> None:
    """A daemon that is killed meanwhile asks the agent what the journal has: nothing else may be missing."""
    words = _KINDS["words"][: _LENGTH // 2]
    prompt = f"{words} {_TOKEN} {words}."
    session = _take_turn(world, prompt)
    leg = world.session(session).legs[-1].id
    assert Path(f"{world.folders.legs}/{leg}/prompt").read_text("utf-8") == prompt
    prompts = [event.body.prompt for event in world.events(session) if isinstance(event.body, TurnBegun)]
    assert prompts == [f"{words} [redacted: github-token] {words}."]
