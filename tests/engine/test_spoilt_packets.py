"""A waiting packet that was edited to nonsense: refused before anybody is stopped, with the way out."""

import os
from collections.abc import Callable

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets
from tests.support.at_work import begin, finish_turn, has_taken_over, say
from tests.support.mute_agent import is_at_rest, mutable_world, set_mute
from tests.support.relay_world import RelayWorld
from tests.support.seats import run

pytestmark = pytest.mark.size("test")

RULE = "Never touch the blue door."


def write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def break_document(stem: str) -> None:
    write(f"{stem}.json", b"no JSON any more {")


def break_version(stem: str) -> None:
    write(f"{stem}.json", b'{"schema": "agent-relay/resume-packet", "version": 99}')


def empty_text(stem: str) -> None:
    write(f"{stem}.md", b" \n")


def make_document_a_folder(stem: str) -> None:
    os.unlink(f"{stem}.json")
    os.mkdir(f"{stem}.json")


SPOILT = [break_document, break_version, empty_text, make_document_a_folder]


def save(world: RelayWorld) -> tuple[str, str]:
    """A session whose agent has worked, and the stem of a packet that waits for the understudy."""
    session = begin(world)
    say(world, session, f"paint the shed. {RULE}")
    finish_turn(world, session)
    world.open("understudy", no_launch=True, session=session)
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    return session, list_packets(folder)[-1][2].removesuffix(".json")


def refuse(world: RelayWorld, op: str, **fields: object) -> RelayError:
    with pytest.raises(RelayError) as refused:
        world.ask(op, env=world.environ, cwd=world.project, **fields)
    return refused.value


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_spoilt_packet_is_refused_while_the_agent_works_on(
    world: RelayWorld, spoil: Callable[[str], None]
) -> None:
    """Stopped first and read then, the session would be left with nobody in it."""
    session, stem = save(world)
    spoil(stem)
    for op, fields in (("open", {"rows": 30, "cols": 100}), ("use", {})):
        error = refuse(world, op, agent="understudy", session=session, **fields)
        assert error.code == 65
        assert stem in error.sentence
        assert f"agent-relay understudy --session {session} --no-launch" in error.hint
    found = world.session(session)
    assert (found.state, found.agent, found.handoff) == (State.READY, "demo", None)
    assert "handoff.begun" not in [event.body.name for event in world.events(session)]


@pytest.mark.parametrize("spoil", [break_document, empty_text])
def test_the_way_out_that_is_named_leads_out(world: RelayWorld, spoil: Callable[[str], None]) -> None:
    """A hint that changes nothing would leave the user to delete files by hand."""
    session, stem = save(world)
    spoil(stem)
    refuse(world, "use", agent="understudy", session=session)
    done = run(world, "understudy", "--session", session, "--no-launch")
    assert done.status == 0
    world.open("understudy", session=session)
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert found.done[0].sequence == 3


def test_the_command_says_so_with_its_own_status(world: RelayWorld) -> None:
    """Scripts tell a spoilt packet from an agent that failed by the number."""
    session, stem = save(world)
    break_document(stem)
    done = run(world, "understudy", "--session", session, "--json")
    assert (done.status, done.out) == (65, "")
    assert done.err.count("agent-relay: ") == 1
    assert "--no-launch" in done.err


def test_the_next_one_of_the_order_is_checked_like_one_that_was_named(world: RelayWorld) -> None:
    """Who it is comes out only when it is decided; until then nobody may be stopped."""
    session, stem = save(world)
    break_document(stem)
    assert refuse(world, "use", agent="", session=session).code == 65
    assert world.session(session).agent == "demo"


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_limit_hands_over_past_a_spoilt_packet(world: RelayWorld, spoil: Callable[[str], None]) -> None:
    """Nobody asked for that packet now: the failover makes one of its own, as ever."""
    session, stem = save(world)
    spoil(stem)
    say(world, session, "out of everything")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert found.done[0].reason == "rate_limit"
    assert found.done[0].sequence == 2


@pytest.mark.parametrize("spoil", [break_document, empty_text])
def test_a_packet_spoilt_before_anybody_worked_on_it_is_refused_and_can_be_made_again(
    spoil: Callable[[str], None],
) -> None:
    """Its handoff was cancelled; what it says is known to nobody who would be asked again."""
    with mutable_world() as world:
        world.start_daemon()
        session = begin(world)
        say(world, session, f"paint the shed. {RULE}")
        finish_turn(world, session)
        world.open("understudy", session=session)
        found = world.wait_for(session, lambda now: now.agent == "understudy", "the understudy starts")
        assert found.handoff is not None
        world.ask("handoff.cancel", session=session, handoff=found.handoff.id)
        world.wait_for(session, is_at_rest, "the session rests")
        set_mute(world, mute=False)
        stem = list_packets(f"{world.project}/.agent-relay/sessions/{session}")[-1][2].removesuffix(".json")
        spoil(stem)
        assert refuse(world, "handoff.retry", session=session, handoff=found.handoff.id).code == 65
        error = refuse(world, "open", agent="understudy", session=session, rows=30, cols=100)
        assert error.code == 65
        assert f"agent-relay understudy --session {session} --no-launch" in error.hint
        assert run(world, "understudy", "--session", session, "--no-launch").status == 0
        world.open("understudy", session=session)
        found = world.wait_for(session, has_taken_over, "the understudy took over")
        path = f"{world.home}/.demo-agent/understudy/{found.legs[-1].native_id}.jsonl"
        with open(path, encoding="utf-8") as file:
            assert "paint the shed" in file.read()
