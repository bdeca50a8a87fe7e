"""A waiting packet that was edited to nonsense: refused before anybody is stopped, with the way out."""

import os
from collections.abc import Callable

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets
from tests.support.at_work import WorkingWorld
from tests.support.mute_agent import is_at_rest, mutable_world, set_mute
from tests.support.seats import run
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

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


def save(world: WorkingWorld) -> tuple[str, str]:
    """A session whose agent has worked, and the stem of a packet that waits for the understudy."""
    session = world.begin_worked(f"paint the shed. {RULE}")
    world.open("understudy", no_launch=True, session=session)
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    return session, list_packets(folder)[-1][2].removesuffix(".json")


def refuse(world: WorkingWorld, op: str, **fields: object) -> RelayError:
    with pytest.raises(RelayError) as refused:
        world.ask(op, env=world.environ, cwd=world.project, **fields)
    return refused.value


@pytest.mark.parametrize("spoil", sized(SPOILT, SPOILT[:1], name=lambda spoil: spoil.__name__))
def test_a_spoilt_packet_is_refused_while_the_agent_works_on(
    world: WorkingWorld, spoil: Callable[[str], None]
) -> None:
    """Stopped first and read then, the session would be left with nobody in it.

    The next one of the order is checked like one that was named. At a limit nobody asked for that packet: the
    failover makes one of its own, as ever.
    """
    session, stem = save(world)
    spoil(stem)
    for op, fields in (("open", {"rows": 30, "cols": 100}), ("use", {})):
        error = refuse(world, op, agent="understudy", session=session, **fields)
        assert error.code == 65
        assert stem in error.sentence
        assert f"agent-relay understudy --session {session} --no-launch" in error.hint
    assert refuse(world, "use", agent="", session=session).code == 65
    found = world.session(session)
    assert (found.state, found.agent, found.handoff) == (State.READY, "demo", None)
    assert "handoff.begun" not in world.names(session)
    done = world.run_out(session).done[0]
    assert (done.reason, done.sequence) == ("rate_limit", 2)


@pytest.mark.parametrize("spoil", [break_document, empty_text])
def test_the_way_out_that_is_named_leads_out(world: WorkingWorld, spoil: Callable[[str], None]) -> None:
    """A hint that changes nothing would leave the user to delete files by hand."""
    session, stem = save(world)
    spoil(stem)
    # Scripts tell it from an agent that failed by the status.
    done = run(world, "understudy", "--session", session, "--json")
    assert (done.status, done.out) == (65, "")
    assert done.err.count("agent-relay: ") == 1
    assert "--no-launch" in done.err
    assert run(world, "understudy", "--session", session, "--no-launch").status == 0
    world.open("understudy", session=session)
    found = world.wait_handed_over(session)
    assert found.done[0].sequence == 3


@pytest.mark.parametrize("spoil", [break_document, empty_text])
def test_a_packet_spoilt_before_anybody_worked_on_it_is_refused_and_can_be_made_again(
    spoil: Callable[[str], None],
) -> None:
    """Its handoff was cancelled; what it says is known to nobody who would be asked again."""
    with mutable_world() as world:
        session = world.begin_worked(f"paint the shed. {RULE}")
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
        world.wait_handed_over(session)
        assert "paint the shed" in world.read_record(session)
