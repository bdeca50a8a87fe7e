"""Headless turns as the daemon offers them to any follower, one that comes late included."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.state import State
from tests.house import tree
from tests.support.at_work import WorkingWorld
from tests.support.relay_world import is_daemons, wait_until

pytestmark = pytest.mark.size("every")


def begin(world: WorkingWorld, task: str = "hello", **wish: object) -> dict[str, object]:
    """What the daemon answers to somebody who wants a turn."""
    return world.ask("run.begin", agent="demo", task=task, cwd=world.project, env=world.environ, **wish)


def follow(world: WorkingWorld, begun: dict[str, object]) -> tuple[list[dict[str, object]], int]:
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


def read_texts(events: list[dict[str, object]]) -> list[object]:
    return [event["text"] for event in events if event["type"] == "text"]


def list_legs(world: WorkingWorld) -> list[str]:
    return os.listdir(world.folders.legs)


def wait_idle(world: WorkingWorld) -> None:
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nobody works")


@pytest.mark.size("test")
def test_a_follower_that_comes_late_is_told_everything_even_by_another_daemon(world: WorkingWorld) -> None:
    """A command that was stopped, or a machine that was busy, costs no word.

    Followers need not ask in circles: an answer with nothing in it waits. And nobody's words lie around
    for longer than somebody reads them.
    """
    begun = begin(world)
    assert world.ask("run.follow", session=begun["session"], told={"number": 3})["events"] != []
    world.wait_state(str(begun["session"]), State.ENDED)
    world.restart()
    events, _ = follow(world, begun)
    assert read_texts(events) == ["demo heard you"]
    assert events[-1]["outcome"] == "done"
    assert read_texts(follow(world, begun)[0]) == ["demo heard you"]
    kept = set(list_legs(world))
    again = begin(world)
    follow(world, again)
    assert len(set(list_legs(world)) - kept) == 1
    world.ask("run.forget", session=again["session"])
    assert set(list_legs(world)) <= kept
    assert read_texts(follow(world, again)[0]) == []


def test_what_was_read_before_the_session_ended_is_forgotten_when_it_ends(world: WorkingWorld) -> None:
    """A follower hears of its turn's end while the session's own is still being written."""
    begun = begin(world, waits=True)
    follow(world, begun)
    world.ask("run.forget", session=begun["session"])
    assert len(list_legs(world)) == 1
    world.ask("session.stop", session=begun["session"])
    wait_until(lambda: list_legs(world) == [], "nothing of the leg is left", limit_s=30)


def test_a_long_message_takes_several_answers_and_is_whole(world: WorkingWorld) -> None:
    """One answer is one line of the protocol, and that has a limit."""
    words = "é" * 300_000
    world.play(demo=[{"do": [{"say": words}]}])
    events, answers = follow(world, begin(world))
    said = [event for event in events if event["type"] == "text"]
    assert "".join(str(event["text"]) for event in said) == words
    assert [event["more"] for event in said] == [True] * (len(said) - 1) + [False]
    assert answers > 3


def test_what_cannot_be_meant_is_refused(world: WorkingWorld) -> None:
    """Whatever comes over the socket harms nothing; and an agent may need a screen."""
    folder = Path(world.folders.config, "adapters", "plain")
    folder.mkdir(parents=True, mode=0o700)
    (folder / "adapter.toml").write_text(
        'name = "plain"\ntitle = "Plain"\nquit = []\n[launch]\nprogram = "cat"\n'
        '[deliver]\npacket_by = "paste"\nopening = "Go on."\n'
    )
    (folder / "rules.toml").touch()
    with pytest.raises(WrongUseError, match="Plain cannot work without a screen"):
        world.ask("run.begin", agent="plain", task="hello", cwd=world.project, env=world.environ)
    begun = begin(world)
    for told in ({"number": -1}, {"number": "1"}, {}, 7):
        with pytest.raises(WrongUseError):
            world.ask("run.follow", session=begun["session"], told=told)
    with pytest.raises(WrongUseError, match="there is no session"):
        world.ask("run.follow", session="01J", told={"number": 0})
    with pytest.raises(WrongUseError, match=r"^run\.begin: Expected `int` >= 0"):
        begin(world, most=-1)
    assert follow(world, begun)[0][-1]["outcome"] == "done"


def test_a_line_that_is_too_long_is_said_to_be_left_out_and_the_next_one_is_told(world: WorkingWorld) -> None:
    """A tool that prints a database must not make the turn look as if nothing had been said."""
    says = ("a", "x" * (9 << 20), "b", "y" * (4 << 20))
    world.play(demo=[{"do": [{"say": text} for text in says]}])
    events, _ = follow(world, begin(world))
    told = [(event["type"], event.get("text")) for event in events if event["type"] in {"text", "left-out"}]
    assert told == [("text", "a"), ("left-out", None), ("text", "b"), ("left-out", None)]
    assert {event["longest"] for event in events if event["type"] == "left-out"} == {4 << 20}


FOLLOWER = """
import json, sys
from agent_relay.client.connection import Connection
from agent_relay.system.disk.folders import get_folders

_, project, session, told = sys.argv
with Connection.open(get_folders()) as connection:
    answer = connection.request("run.follow", session=session, told=json.loads(told))
    events = answer["events"]
    print("reads", flush=True)
    sys.stdin.readline()
    while not answer["over"]:
        answer = connection.request("run.follow", session=session, told=answer["told"], limit_s=120)
        events += answer["events"]
    print("".join(event["text"] for event in events if event["type"] == "text"))
    connection.request("run.forget", session=session)
"""


def test_two_followers_of_one_turn_are_both_told_everything(world: WorkingWorld) -> None:
    """The first to have read it must not take the words away from the other."""
    begun = begin(world)
    slow = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, world.project, str(begun["session"]), json.dumps(begun["told"])],
        env=world.environ | {"PYTHONPATH": tree.CHECKOUT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert slow.stdin is not None
    assert slow.stdout is not None
    assert slow.stdout.readline() == "reads\n"
    world.wait_state(str(begun["session"]), State.ENDED)
    follow(world, begun)
    world.ask("run.forget", session=begun["session"])
    assert len(list_legs(world)) == 1
    out, _ = slow.communicate("go on\n", timeout=120)
    assert out == "demo heard you\n"
    assert list_legs(world) == []


@pytest.mark.size("test")
def test_a_session_may_wait_for_its_next_turn(world: WorkingWorld) -> None:
    """Between two turns no agent lives, and the next one goes on in its conversation, after a crash too."""
    begun = begin(world, waits=True)
    session = str(begun["session"])
    events, _ = follow(world, begun)
    assert (events[-1]["type"], events[-1]["outcome"]) == ("end", "done")
    found = world.session(session)
    assert (found.state, found.living_leg) == (State.READY, None)
    world.ask("run.forget", session=session)
    assert len(list_legs(world)) == 1
    world.restart()
    again = begin(world, "and now?", waits=True, session=session)
    assert again["session"] == session
    assert follow(world, again)[0][-1]["outcome"] == "done"
    first, second = world.session(session).legs
    assert (second.resumes, second.native_id) == (True, first.native_id)
    world.stop(session)
    world.ask("run.forget", session=session)
    wait_until(lambda: list_legs(world) == [], "nothing of the legs is left")
    wait_idle(world)


def test_an_agent_that_says_it_is_done_and_stays_does_not_hold_its_turn(world: WorkingWorld) -> None:
    """It may wait for a server it started; nobody is there to end that."""
    world.play(demo=[{"do": [{"say": "it runs"}, {"linger_s": 600}]}])
    begun = begin(world)
    events, _ = follow(world, begun)
    assert (events[-1]["outcome"], events[-1]["why"]) == ("done", "")
    wait_idle(world)


def test_a_turn_that_cannot_be_journalled_says_so_to_whoever_follows(world: WorkingWorld) -> None:
    """A script would wait for hours, and say nothing of the disk that is full."""
    world.play(demo=[{"do": [{"run": "until [ -e go ]; do sleep 0.1; done"}, {"say": "I end."}]}])
    begun = begin(world)
    session = str(begun["session"])
    world.wait_state(session, State.BUSY)
    daemon = int(str(world.ask("daemon.status")["pid"]))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(daemon, resource.RLIMIT_FSIZE, (0, hard))
    Path(world.project, "go").touch()
    with pytest.raises(RelayError, match=f"session {session} cannot go on: .*journal"):
        follow(world, begun)
    resource.prlimit(daemon, resource.RLIMIT_FSIZE, (hard, hard))
    events, _ = follow(world, begun)
    assert events[-1]["outcome"] == "done"


def test_a_full_conversation_is_handed_to_a_fresh_one_at_its_next_turn(world: WorkingWorld) -> None:
    """A script that goes on for days never stops at a full context."""
    world.configure('[context]\nmode = "handoff"\n')
    world.play(demo=[{"when": "fill", "do": [{"context": 950, "say": "full"}]}, {"do": [{"say": "afresh"}]}])
    begun = begin(world, "fill it")
    world.wait_state(str(begun["session"]), State.ENDED)
    again = begin(world, "go on", session=begun["session"])
    assert read_texts(follow(world, again)[0]) == ["afresh"]
    session = world.session(str(begun["session"]))
    first, second = session.legs
    assert (second.agent, second.resumes, session.done[0].reason) == ("demo", False, "context")
    assert first.native_id != second.native_id
