"""A context that fills up under a real daemon: told, drafted for, handed over or compacted."""

import json
import os

import pytest

from agent_relay.domain.limits import Level
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import begin, finish_turn, folder_of, restart, say
from tests.support.handoffs import write_screenplays
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.writer import add_writer, let_it_write

pytestmark = pytest.mark.size("test")

SCENES = [
    {"when": "to (?P<n>[0-9]+)", "do": [{"context": 720, "say": "much"}]},
    {"when": "draft", "do": [{"context": 820, "say": "more"}]},
    {"when": "fill at length", "do": [{"wait_s": 2}, {"context": 950, "say": "full"}]},
    {"when": "fill", "do": [{"context": 950, "say": "full"}]},
    {"when": "handoff-context", "do": [{"context": 100, "say": "I go on"}]},
    {"again": True, "do": [{"context": 100, "say": "heard"}]},
]


def configure(world: RelayWorld, text: str, *, agent: str = "demo") -> None:
    """A new daemon knows the configuration and what the agents play."""
    with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
        file.write(text)
    world.environ |= write_screenplays(f"{world.folder}/full", **{agent: SCENES})
    restart(world)


def wait_level(world: RelayWorld, session: str, level: Level) -> Session:
    return world.wait_for(session, lambda found: found.context.level is level, f"the context to be {level}")


def wait_fresh(world: RelayWorld, session: str) -> Session:
    """The session once a second leg has its packet and works or waits."""
    return world.wait_for(session, lambda found: len(found.done) == 1, "a fresh leg has its packet")


def count(world: RelayWorld, session: str, name: str) -> int:
    return [event.body.name for event in world.events(session)].count(name)


def test_nothing_is_noted_unless_the_user_wants_it(world: RelayWorld) -> None:
    """Off is the default; a full context is the agent's own business then."""
    configure(world, "")
    session = begin(world)
    say(world, session, "fill")
    finish_turn(world, session)
    assert count(world, session, "context.noted") == 0


def test_the_user_is_told_and_status_says_it(world: RelayWorld) -> None:
    """In ask mode that is all, however full it gets."""
    configure(world, '[context]\nmode = "ask"\n')
    session = begin(world)
    say(world, session, "fill")
    wait_level(world, session, Level.ACT)
    finish_turn(world, session)
    assert str(world.ask("where", session=session)["message"]).startswith(
        "→ The context of demo is 95 % full (950 of 1,000 tokens). Hand over when it suits you: "
        "press the relay key and type /handoff"
    )
    assert world.session(session).handoff is None


def test_a_full_agent_gives_way_to_a_fresh_one_of_its_own(world: RelayWorld) -> None:
    """Same agent, another conversation, a packet that says why; and then nothing more happens."""
    configure(world, '[context]\nmode = "handoff"\n')
    session = begin(world)
    say(world, session, "fill")
    found = wait_fresh(world, session)
    first, second = found.legs
    assert (second.agent, second.resumes) == ("demo", False)
    assert first.native_id != second.native_id
    with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}", "rb") as file:
        packet = json.load(file)
    assert (packet["checkpoint_reason"], packet["previous_agent"]) == ("context", "demo")
    wait_level(world, session, Level.LOW)
    say(world, session, "hello")
    finish_turn(world, session)
    assert count(world, session, "handoff.begun") == 1


def test_a_half_typed_line_is_waited_out(world: RelayWorld) -> None:
    """What somebody is typing must not be lost with the agent it was typed into."""
    configure(world, '[context]\nmode = "handoff"\n')
    session = begin(world)
    say(world, session, "fill at length")
    type_into(folder_of(world, session), b"and another th")
    wait_level(world, session, Level.ACT)
    finish_turn(world, session)
    assert world.session(session).handoff is None
    type_into(folder_of(world, session), b"\x03")
    assert wait_fresh(world, session).done[0].reason == "context"


def test_the_agent_compacts_by_its_own_command(world: RelayWorld) -> None:
    """Once; it says itself that it is low again."""
    configure(world, '[context]\nmode = "compact"\n')
    session = begin(world)
    say(world, session, "fill")
    wait_level(world, session, Level.LOW)
    assert count(world, session, "context.compacting") == 1
    assert len(world.session(session).legs) == 1


def test_the_draft_made_ahead_is_in_the_packet(world: RelayWorld) -> None:
    """Nothing is asked of the agent at the handoff itself."""
    add_writer(world)
    configure(world, '[context]\nmode = "handoff"\n', agent="writer")
    let_it_write(world, 'echo x >> "$HOME/asked"; echo "## Goal"; echo "Paint the shed."')
    session = str(world.open("writer")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the writer is ready")
    say(world, session, "draft")
    kept = f"{world.project}/.agent-relay/sessions/{session}/narrative.json"
    wait_until(lambda: os.path.exists(kept), "the draft is kept")
    say(world, session, "fill")
    found = wait_fresh(world, session)
    with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}", "rb") as file:
        narrative = json.load(file)["narrative"]
    assert narrative.endswith("1 later prompt is not covered)\n\n## Goal\nPaint the shed.")
    with open(f"{world.home}/asked", encoding="utf-8") as file:
        assert file.read() == "x\n"


def test_somebody_who_asks_for_a_document_comes_before_a_draft(world: RelayWorld) -> None:
    """The draft is nobody's wish; its run is ended and theirs begins."""
    add_writer(world)
    configure(world, '[context]\nmode = "handoff"\n', agent="writer")
    let_it_write(world, 'touch "$HOME/begun"; sleep 600')
    session = str(world.open("writer")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the writer is ready")
    living = world.find_workers()
    say(world, session, "draft")
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the draft is being written")
    let_it_write(world, "echo mine")
    assert world.ask("narrate", session=session)["text"] == "mine"
    assert world.find_workers() <= living


def test_a_draft_that_comes_too_late_is_given_up(world: RelayWorld) -> None:
    """A handoff that has begun waits for nobody, and no process of the draft is left."""
    add_writer(world)
    configure(world, '[context]\nmode = "handoff"\n', agent="writer")
    let_it_write(world, 'touch "$HOME/begun"; sleep 600')
    session = str(world.open("writer")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the writer is ready")
    say(world, session, "draft")
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the draft is being written")
    world.ask("use", session=session, agent="understudy")
    world.wait_for(session, lambda found: found.agent == "understudy" and not found.handoff, "it took over")
    assert [line for line in world.processes().values() if "sleep 600" in line] == []


def test_a_near_limit_is_drafted_for_where_the_user_wants_that(world: RelayWorld) -> None:
    """What it writes is there when it has stopped answering."""
    add_writer(world)
    with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
        file.write("[handoff]\ndraft_near_limit = true\nsave_to_disk = true\n")
    restart(world)
    let_it_write(world, "echo '## Goal'")
    session = str(world.open("writer")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the writer is ready")
    say(world, session, "near")
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    wait_until(lambda: os.path.exists(f"{folder}/narrative.json"), "the draft is kept")
    say(world, session, "out")
    found = world.wait_for(session, lambda found: len(found.done) == 1, "the next agent took over")
    with open(f"{folder}/{found.done[0].json_path}", "rb") as file:
        assert "## Goal" in json.load(file)["narrative"]
    saved = [name for name in os.listdir(f"{folder}/resume") if name.startswith("handoff-")]
    began = f"handoff-{found.done[0].began_at:%Y%m%dT%H%M%SZ}.md"
    assert began in saved
    with open(f"{folder}/resume/{began}", encoding="utf-8") as file:
        assert "## Goal" in file.read()


@pytest.mark.parametrize("mode", ["handoff", "compact"])
def test_a_killed_daemon_leaves_the_relief_to_the_next_one(world: RelayWorld, mode: str) -> None:
    """Old records are read again then: what was done is not done twice, what was not is done once."""
    configure(world, f'[context]\nmode = "{mode}"\n')
    session = begin(world)
    say(world, session, "fill at length")
    type_into(folder_of(world, session), b"and another th")
    wait_level(world, session, Level.ACT)
    finish_turn(world, session)
    restart(world)
    type_into(folder_of(world, session), b"\x03")
    name = "handoff.begun" if mode == "handoff" else "context.compacting"
    wait_until(lambda: count(world, session, name) == 1, "it was done")
    wait_level(world, session, Level.LOW)
    restart(world)
    world.ask("where", session=session)
    assert count(world, session, name) == 1
