"""A context that fills up under a real daemon: told, drafted for, handed over or compacted."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.limits import Level
from agent_relay.domain.session import Session
from tests.support import at_work
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import wait_until
from tests.support.writer import add_writer, let_it_write

pytestmark = pytest.mark.size("every")

SCENES = [
    {"when": "to (?P<n>[0-9]+)", "do": [{"context": 720, "say": "much"}]},
    {"when": "draft", "do": [{"context": 820, "say": "more"}]},
    {"when": "fill at length", "do": [{"wait_s": 2}, {"context": 950, "say": "full"}]},
    {"when": "fill", "do": [{"context": 950, "say": "full"}]},
    {"when": "handoff-context", "do": [{"context": 100, "say": "I go on"}]},
    {"again": True, "do": [{"context": 100, "say": "heard"}]},
]


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """Agents whose context fills up as they are told."""
    with working_world(starts=False, demo=SCENES) as made:
        yield made


def wait_level(world: WorkingWorld, session: str, level: Level) -> Session:
    return world.wait_for(session, lambda found: found.context.level is level, f"the context to be {level}")


def wait_fresh(world: WorkingWorld, session: str) -> Session:
    """The session once a second leg has its packet and works or waits."""
    return world.wait_for(session, lambda found: len(found.done) == 1, "a fresh leg has its packet")


def count(world: WorkingWorld, session: str, name: str) -> int:
    return world.names(session).count(name)


def test_the_user_is_told_and_status_says_it_if_they_want_that(world: WorkingWorld) -> None:
    """Off is the default: a full context is the agent's own business. In ask mode they are told, no more."""
    session = world.begin_worked("fill")
    assert count(world, session, "context.noted") == 0
    world.configure('[context]\nmode = "ask"\n')
    world.restart()
    session = world.begin(new=True)
    world.say(session, "fill")
    wait_level(world, session, Level.ACT)
    world.finish_turn(session)
    assert str(world.where(session, "message")).startswith(
        "→ The context of demo is 95 % full (950 of 1,000 tokens). Hand over when it suits you: "
        "press the relay key and type /handoff"
    )
    assert world.session(session).handoff is None


@pytest.mark.size("test")
def test_a_full_agent_gives_way_to_a_fresh_one_of_its_own(world: WorkingWorld) -> None:
    """Same agent, another conversation, a packet that says why; and then nothing more happens.

    What somebody is typing must not be lost with the agent it was typed into: that is waited out.
    """
    world.configure('[context]\nmode = "handoff"\n')
    session = world.begin()
    world.say(session, "fill at length")
    world.type(session, b"and another th")
    wait_level(world, session, Level.ACT)
    world.finish_turn(session)
    assert world.session(session).handoff is None
    world.type(session, b"\x03")
    first, second = wait_fresh(world, session).legs
    assert (second.agent, second.resumes) == ("demo", False)
    assert first.native_id != second.native_id
    packet = world.read_packet(session)
    assert (packet["checkpoint_reason"], packet["previous_agent"]) == ("context", "demo")
    wait_level(world, session, Level.LOW)
    world.say(session, "hello")
    world.finish_turn(session)
    assert count(world, session, "handoff.begun") == 1


def test_the_agent_compacts_by_its_own_command(world: WorkingWorld) -> None:
    """Once; it says itself that it is low again."""
    world.configure('[context]\nmode = "compact"\n')
    session = world.begin()
    world.say(session, "fill")
    wait_level(world, session, Level.LOW)
    assert count(world, session, "context.compacting") == 1
    assert len(world.session(session).legs) == 1


def begin_drafting(world: WorkingWorld, script: str, mark: str) -> str:
    """A session whose agent writes a draft by this script; it has made `mark`."""
    world.configure('[context]\nmode = "handoff"\n')
    add_writer(world)
    let_it_write(world, script)
    session = world.begin("writer")
    world.say(session, "draft")
    wait_until(lambda: os.path.exists(mark.format(home=world.home, folder=world.path(session))), "it drafts")
    return session


def list_drafting(world: WorkingWorld) -> list[str]:
    return [line for line in world.processes().values() if "sleep 600" in line or "--write" in line]


SLOW_DRAFT = 'touch "$HOME/begun"; sleep 600', "{home}/begun"


def test_the_draft_made_ahead_is_in_the_packet(world: WorkingWorld) -> None:
    """Nothing is asked of the agent at the handoff itself."""
    script = 'echo x >> "$HOME/asked"; echo "## Goal"; echo "Paint the shed."'
    session = begin_drafting(world, script, "{folder}/narrative.json")
    world.say(session, "fill")
    wait_fresh(world, session)
    narrative = str(world.read_packet(session)["narrative"])
    assert narrative.endswith("1 later prompt is not covered)\n\n## Goal\nPaint the shed.")
    assert Path(f"{world.home}/asked").read_text("utf-8") == "x\n"


def test_somebody_who_asks_for_a_document_comes_before_a_draft(world: WorkingWorld) -> None:
    """The draft is nobody's wish; its run is ended and theirs begins."""
    session = begin_drafting(world, *SLOW_DRAFT)
    let_it_write(world, "echo mine")
    assert world.ask("narrate", session=session)["text"] == "mine"
    assert list_drafting(world) == []


def test_a_draft_that_comes_too_late_is_given_up(world: WorkingWorld) -> None:
    """A handoff that has begun waits for nobody, and no process of the draft is left."""
    session = begin_drafting(world, *SLOW_DRAFT)
    world.ask("use", session=session, agent="understudy")
    world.wait_for(session, lambda found: found.agent == "understudy" and not found.handoff, "it took over")
    assert list_drafting(world) == []


def test_a_near_limit_is_drafted_for_where_the_user_wants_that(world: WorkingWorld) -> None:
    """What it writes is there when it has stopped answering."""
    world.play(demo=at_work.SCENES)
    world.configure("[handoff]\ndraft_near_limit = true\nsave_to_disk = true\n")
    add_writer(world)
    let_it_write(world, "echo '## Goal'")
    session = world.begin("writer")
    world.say(session, "near")
    wait_until(world.path(session, "narrative.json").exists, "the draft is kept")
    world.say(session, "out")
    found = wait_fresh(world, session)
    assert "## Goal" in str(world.read_packet(session)["narrative"])
    saved = world.path(session, "resume", f"handoff-{found.done[0].began_at:%Y%m%dT%H%M%SZ}.md")
    assert "## Goal" in saved.read_text("utf-8")


@pytest.mark.parametrize("mode", ["handoff", "compact"])
def test_a_killed_daemon_leaves_the_relief_to_the_next_one(world: WorkingWorld, mode: str) -> None:
    """Old records are read again then: what was done is not done twice, what was not is done once."""
    world.configure(f'[context]\nmode = "{mode}"\n')
    session = world.begin()
    world.say(session, "fill at length")
    world.type(session, b"and another th")
    wait_level(world, session, Level.ACT)
    world.finish_turn(session)
    world.restart()
    world.type(session, b"\x03")
    name = "handoff.begun" if mode == "handoff" else "context.compacting"
    wait_until(lambda: count(world, session, name) == 1, "it was done")
    wait_level(world, session, Level.LOW)
    world.restart()
    world.ask("where", session=session)
    assert count(world, session, name) == 1
