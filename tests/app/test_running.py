"""Headless turns as the daemon offers them to any follower, one that comes late included."""

import os

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.session import State
from tests.support.at_work import restart
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, relay_world, wait_until


def begin(world: RelayWorld, task: str = "hello", **wish: object) -> dict[str, object]:
    """What the daemon answers to somebody who wants a turn."""
    return world.ask("run.begin", agent="demo", task=task, cwd=world.project, env=world.environ, **wish)


def follow(world: RelayWorld, begun: dict[str, object]) -> tuple[list[dict[str, object]], int]:
    """Every event of the turn, and how many answers they took."""
    events: list[dict[str, object]] = []
    told, answers = begun["told"], 0
    while True:
        answer = world.ask("run.follow", session=begun["session"], told=told)
        found = answer["events"]
        assert isinstance(found, list)
        events += found
        told, answers = answer["told"], answers + 1
        if answer["over"]:
            return events, answers


def wait_over(world: RelayWorld, begun: dict[str, object]) -> None:
    world.wait_for(str(begun["session"]), lambda found: found.state is State.ENDED, "the turn is over")


def test_a_follower_that_comes_late_is_told_everything_even_by_another_daemon(world: RelayWorld) -> None:
    """A command that was stopped, or a machine that was busy, costs no word."""
    begun = begin(world)
    wait_over(world, begun)
    restart(world)
    events, _ = follow(world, begun)
    assert [event["text"] for event in events if event["type"] == "text"] == ["demo heard you"]
    assert events[-1]["outcome"] == "done"
    assert [event["text"] for event in follow(world, begun)[0] if event["type"] == "text"] == [
        "demo heard you"
    ]


def test_what_was_read_is_forgotten(world: RelayWorld) -> None:
    """Nobody's words lie around for longer than somebody reads them."""
    begun = begin(world)
    follow(world, begun)
    assert len(os.listdir(world.folders.legs)) == 1
    world.ask("run.forget", session=begun["session"])
    assert os.listdir(world.folders.legs) == []
    assert [event for event in follow(world, begun)[0] if event["type"] == "text"] == []


def test_a_long_message_takes_several_answers_and_is_whole() -> None:
    """One answer is one line of the protocol, and that has a limit."""
    words = "é" * 300_000
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=[{"do": [{"say": words}]}])
        world.start_daemon()
        events, answers = follow(world, begin(world))
    said = [event for event in events if event["type"] == "text"]
    assert "".join(str(event["text"]) for event in said) == words
    assert [event["more"] for event in said] == [True] * (len(said) - 1) + [False]
    assert answers > 3


def test_an_answer_with_nothing_in_it_waits_for_something(world: RelayWorld) -> None:
    """Followers need not ask in circles."""
    begun = begin(world)
    answer = world.ask("run.follow", session=begun["session"], told={"number": 3})
    assert answer["events"] != []
    wait_until(lambda: world.session(str(begun["session"])).state is State.ENDED, "the turn is over")


@pytest.mark.parametrize("told", [{"number": -1}, {"number": "1"}, {}, 7])
def test_a_place_that_is_none_is_refused(world: RelayWorld, told: object) -> None:
    """Whatever comes over the socket harms nothing."""
    begun = begin(world)
    with pytest.raises(WrongUseError):
        world.ask("run.follow", session=begun["session"], told=told)
    with pytest.raises(WrongUseError, match="there is no session"):
        world.ask("run.follow", session="01J", told={"number": 0})
    with pytest.raises(WrongUseError, match="needs most between"):
        begin(world, most=-1)
    assert follow(world, begun)[0][-1]["outcome"] == "done"


def test_an_agent_that_needs_a_screen_is_refused(world: RelayWorld) -> None:
    """Its adapter says nothing of headless work."""
    folder = f"{world.folders.config}/adapters/plain"
    os.makedirs(folder, mode=0o700)
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as file:
        file.write(
            'name = "plain"\nletter = "p"\ntitle = "Plain"\nquit = []\n[launch]\nprogram = "cat"\n'
            '[deliver]\npacket_by = "paste"\nopening = "Go on."\n'
        )
    with open(f"{folder}/rules.toml", "w", encoding="utf-8") as file:
        file.write("")
    restart(world)
    with pytest.raises(WrongUseError, match="Plain cannot work without a screen"):
        world.ask("run.begin", agent="plain", task="hello", cwd=world.project, env=world.environ)
