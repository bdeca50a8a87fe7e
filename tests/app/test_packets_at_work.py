"""Packets of sessions at work: had without a launch, numbered safely, built of adopted sessions."""

import json
import os
import shutil

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.event import PacketSaved
from agent_relay.domain.session import Leg, State
from tests.support.at_work import begin, finish_turn, has_taken_over, say
from tests.support.relay_world import RelayWorld


def test_a_packet_can_be_had_without_launching_anybody(world: RelayWorld) -> None:
    """`--no-launch`: the session and its agent go on untouched, and later packets get later numbers."""
    session = begin(world)
    say(world, session, "paint the shed")
    finish_turn(world, session)
    before = world.session(session)
    answer = world.open("understudy", no_launch=True, focus="the door")
    path = f"{world.project}/.agent-relay/sessions/{session}/resume/0001-understudy.md"
    assert answer["message"] == f"Packet for understudy: {path}"
    assert (answer["session"], answer["agent"], answer["handoff"]) == (session, "demo", "")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "paint the shed" in text
    assert "the door" in text
    after = world.session(session)
    assert (after.state, after.legs, after.packets, after.saved) == (State.READY, before.legs, 1, (1,))
    assert isinstance(world.events(session)[-1].body, PacketSaved)
    say(world, session, "out")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert (found.packets, found.done[0].sequence) == (2, 2)
    with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}", "rb") as file:
        assert json.load(file)["turn_count"] == 2


def _leave_record(world: RelayWorld) -> tuple[str, Leg]:
    """A session that has ended after one turn, and its leg, whose agent's record of that stands."""
    session = begin(world)
    say(world, session, "paint the shed")
    finish_turn(world, session)
    world.ask("session.stop", session=session)
    found = world.wait_for(session, lambda now: now.state is State.ENDED, "the session has ended")
    assert found.leg is not None
    return session, found.leg


def test_a_record_that_cannot_be_read_is_told_of(world: RelayWorld) -> None:
    """A successor that knows nothing of what was done would take it for nothing."""
    session, leg = _leave_record(world)
    os.rename(leg.transcript, f"{leg.transcript}.away")
    os.mkdir(leg.transcript)
    world.open("understudy", session=session, no_launch=True)
    folder = f"{world.project}/.agent-relay/sessions/{session}/resume"
    with open(f"{folder}/0001-understudy.md", encoding="utf-8") as file:
        text = file.read()
    why = f"there is no session {leg.native_id} in {leg.transcript}"
    assert f"its own record could not be read ({why})." in text
    with open(f"{folder}/0001-understudy.json", encoding="utf-8") as file:
        assert json.load(file)["unread"] == why


def test_a_record_that_was_moved_and_cannot_be_read_is_told_of(world: RelayWorld) -> None:
    """It is found by its name; passed over, it would be as if nothing had been done."""
    session, leg = _leave_record(world)
    folder, name = os.path.split(leg.transcript)
    os.rename(leg.transcript, f"{folder}/away")
    os.mkdir(f"{folder}/moved-{name}")
    world.open("understudy", session=session, no_launch=True)
    packet = f"{world.project}/.agent-relay/sessions/{session}/resume/0001-understudy.json"
    with open(packet, encoding="utf-8") as file:
        assert (
            json.load(file)["unread"] == f"cannot read the transcript {folder}/moved-{name}: Is a directory"
        )


def test_a_packet_without_a_session_is_refused_in_one_sentence(world: RelayWorld) -> None:
    """There is nothing to hand over, and no empty session is left behind."""
    with pytest.raises(WrongUseError, match=r"no session runs in .*, so there is nothing to hand over"):
        world.open("understudy", no_launch=True)
    assert not os.path.exists(f"{world.project}/.agent-relay/sessions")


def test_a_packet_number_the_journal_does_not_know_is_left_alone(world: RelayWorld) -> None:
    """A handoff given up while its packet was written must not make every later one fail."""
    session = begin(world)
    world.open("understudy", no_launch=True)
    resume = f"{world.project}/.agent-relay/sessions/{session}/resume"
    for ending in ("json", "md"):
        shutil.copy(f"{resume}/0001-understudy.{ending}", f"{resume}/0002-understudy.{ending}")
    say(world, session, "out")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert found.done[0].sequence == 3


def test_an_adopted_session_of_last_week_is_read(world: RelayWorld) -> None:
    """A transcript older than the leg that stands for it is still that leg's own."""
    session = begin(world)
    say(world, session, "paint the shed")
    finish_turn(world, session)
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    kept = f"{world.home}/.demo-agent/demo"
    for name in os.listdir(kept):
        os.utime(f"{kept}/{name}", (1_700_000_000, 1_700_000_000))
    adopted = str(world.open("understudy", **{"from": "demo", "new": True})["session"])
    found = world.wait_for(adopted, has_taken_over, "the understudy took over")
    text = f"{world.project}/.agent-relay/sessions/{adopted}/{found.done[0].text_path}"
    with open(text, encoding="utf-8") as file:
        assert "paint the shed" in file.read()


def test_older_work_is_not_taken_for_the_newest_where_that_cannot_be_read(world: RelayWorld) -> None:
    """A successor would go on with what was done last week; whoever means that names it."""
    session = begin(world)
    say(world, session, "paint the shed")
    finish_turn(world, session)
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    kept = f"{world.home}/.demo-agent/demo"
    (name,) = os.listdir(kept)
    os.utime(f"{kept}/{name}", (1_700_000_000, 1_700_000_000))
    os.makedirs(f"{kept}/newer.jsonl")
    with pytest.raises(RelayError) as refused:
        world.open("understudy", **{"from": "demo", "new": True})
    assert refused.value.sentence == (
        f"demo's newest session in {world.project} cannot be told: "
        f"cannot read the transcript {kept}/newer.jsonl: Is a directory"
    )
    assert refused.value.hint == "Name one, --from demo:ID; see: agent-relay sessions --native"
    chosen = f"demo:{os.path.splitext(name)[0]}"
    adopted = str(world.open("understudy", **{"from": chosen, "new": True})["session"])
    world.wait_for(adopted, has_taken_over, "the understudy took over")


def test_an_adopted_session_its_own_agent_goes_on_with_keeps_its_past(world: RelayWorld) -> None:
    """No packet carries what was said before relay came: the transcript has to be read from its start."""
    session = begin(world)
    say(world, session, "paint the shed")
    finish_turn(world, session)
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    adopted = str(world.open("demo", **{"from": "demo", "new": True})["session"])
    world.wait_for(adopted, lambda found: found.state is State.READY, "the agent is back")
    say(world, adopted, "out")
    found = world.wait_for(adopted, has_taken_over, "the understudy took over")
    with open(f"{world.project}/.agent-relay/sessions/{adopted}/{found.done[0].json_path}", "rb") as file:
        assert json.load(file)["task"] == "paint the shed"


def test_an_older_native_session_is_adopted_by_its_id(world: RelayWorld) -> None:
    """The newest one is not always the one that is meant."""
    named = []
    for text in ("paint the shed", "mow the lawn"):
        session = begin(world, new=True)
        say(world, session, text)
        leg = finish_turn(world, session).leg
        assert leg is not None
        named.append(leg.native_id)
        world.ask("session.stop", session=session)
        world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    for wanted in (named[0], named[0][-12:]):
        adopted = str(world.open("understudy", **{"from": f"demo:{wanted}", "new": True})["session"])
        found = world.wait_for(adopted, has_taken_over, "the understudy took over")
        with open(f"{world.project}/.agent-relay/sessions/{adopted}/{found.done[0].json_path}", "rb") as file:
            assert json.load(file)["task"] == "paint the shed"
    with pytest.raises(WrongUseError, match="demo has no session of its own called 'zzz' in") as caught:
        world.open("understudy", **{"from": "demo:zzz", "new": True})
    assert caught.value.hint == "See: agent-relay sessions --native"
