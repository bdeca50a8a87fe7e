"""What a user deletes from a packet the successor does not see; a stale one says so; one successor only."""

import json
import os
import threading
from collections.abc import Callable

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets
from tests.support.at_work import begin, finish_turn, has_taken_over, restart, say
from tests.support.handoffs import git
from tests.support.relay_world import RelayWorld, wait_until

pytestmark = pytest.mark.size("test")

RULE = "Never touch the blue door."
TASK = f"paint the shed. {RULE}"


def save(world: RelayWorld, session: str, target: str = "understudy") -> str:
    """The stem of a packet's files for `target`, saved without a launch."""
    world.open(target, no_launch=True, session=session)
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    return list_packets(folder)[-1][2].removesuffix(".json")


def edit_text(stem: str) -> None:
    """The rule is gone from the text."""
    with open(f"{stem}.md", encoding="utf-8") as file:
        text = file.read()
    assert RULE in text
    with open(f"{stem}.md", "w", encoding="utf-8") as file:
        file.write(text.replace(RULE, ""))


def edit_document(stem: str) -> None:
    """The rule is gone from the document."""
    with open(f"{stem}.json", encoding="utf-8") as file:
        text = file.read()
    assert RULE in text
    with open(f"{stem}.json", "w", encoding="utf-8") as file:
        file.write(text.replace(RULE, ""))


def read_told(world: RelayWorld, found: Session) -> str:
    """All the newest agent was told, as it keeps it itself."""
    leg = found.legs[-1]
    with open(f"{world.home}/.demo-agent/{leg.agent}/{leg.native_id}.jsonl", encoding="utf-8") as file:
        return file.read()


def is_handed_over(agent: str) -> Callable[[Session], bool]:
    return lambda found: found.agent == agent and found.handoff is None and len(found.done) == 1


@pytest.mark.parametrize("edit", [edit_text, edit_document])
@pytest.mark.parametrize(("first", "second"), [("demo", "understudy"), ("understudy", "demo")])
def test_what_was_deleted_before_the_launch_the_successor_does_not_see(
    world: RelayWorld, first: str, second: str, edit: Callable[[str], None]
) -> None:
    """From text or document, by paste or by file: the promise users share packets on."""
    session = str(world.open(first)["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the first agent is ready")
    say(world, session, TASK)
    finish_turn(world, session)
    stem = save(world, session, second)
    edit(stem)
    world.open(second, session=session)
    found = world.wait_for(session, is_handed_over(second), "the successor took over")
    told = read_told(world, found)
    assert "paint the shed" in told
    assert RULE not in told
    assert found.done[0].sequence == 1
    assert [row[0] for row in list_packets(os.path.dirname(os.path.dirname(stem)))] == [1]


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GIVEN = {"expect": ["eine Tür", f"login with {TOKEN}"], "rollback": "demo", "question": ["what is missing?"]}


def rewrite_text(stem: str) -> None:
    """Not a line of the text is left as it was."""
    with open(f"{stem}.md", "w", encoding="utf-8") as file:
        file.write("Paint the shed, nothing else.\n")


@pytest.mark.parametrize("edit", [edit_text, edit_document, rewrite_text])
def test_what_is_expected_at_the_pickup_of_an_edited_packet_is_told(
    world: RelayWorld, edit: Callable[[str], None]
) -> None:
    """In the text the successor reads and in the document; what was deleted stays deleted."""
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    stem = save(world, session)
    edit(stem)
    world.open("understudy", session=session, **GIVEN)
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    told = read_told(world, found).replace("\\u00fc", "ü")
    assert all(told.count(text) == 1 for text in ("eine Tür", "what is missing?"))
    assert RULE not in told
    assert TOKEN not in told
    assert found.done[0].sequence == 1
    with open(f"{stem}.json", encoding="utf-8") as file:
        document = json.load(file)
    assert document["expectations"]["deliverables"][0] == "eine Tür"
    assert document["rollback"] == {"agent": "demo", "questions": ["what is missing?"]}
    assert TOKEN not in json.dumps(document)


def test_what_is_passed_on_is_in_a_saved_packet_until_its_user_deletes_it(world: RelayWorld) -> None:
    """An expectation nobody has judged goes on; the user sees it before it is told, and may strike it."""
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    world.open("understudy", session=session, expect=["a blue fence"])
    world.wait_for(session, has_taken_over, "the understudy took over")
    world.wait_for(session, lambda found: found.state is State.READY, "the understudy is ready")
    stem = save(world, session, "demo")
    with open(f"{stem}.md", encoding="utf-8") as file:
        text = file.read()
    assert "a blue fence" in text
    with open(f"{stem}.md", "w", encoding="utf-8") as file:
        file.write(text.replace("a blue fence", ""))
    world.open("demo", session=session)
    found = world.wait_for(session, lambda now: len(now.done) == 2, "demo took over")
    assert "a blue fence" not in read_told(world, found).rpartition("<handoff-context")[2]


def test_a_later_packet_does_not_bring_back_what_was_deleted(world: RelayWorld) -> None:
    """The successor's successor is told from the document: an edit of the text counts there as well."""
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    edit_text(save(world, session))
    world.open("understudy", session=session)
    world.wait_for(session, has_taken_over, "the understudy took over")
    world.wait_for(session, lambda found: found.state is State.READY, "the understudy is ready")
    stem = save(world, session, "demo")
    with open(f"{stem}.md", encoding="utf-8") as file:
        assert RULE not in file.read()


def test_an_untouched_packet_is_not_taken_for_the_present_state(world: RelayWorld) -> None:
    """It was a look at what would be told; what happened since must be told too."""
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    save(world, session)
    world.open("understudy", session=session)
    assert world.wait_for(session, has_taken_over, "the understudy took over").done[0].sequence == 2


def test_a_stale_edited_packet_says_what_happened_since(world: RelayWorld) -> None:
    """The user's edit is honoured, and the successor learns that tree and work went on."""
    git(world.project, "init")
    git(world.project, "commit", "--allow-empty", "-m", "one")
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    edit_text(save(world, session))
    git(world.project, "commit", "--allow-empty", "-m", "two")
    say(world, session, "and the fence")
    wait_until(lambda: "and the fence" in read_told(world, world.session(session)), "the agent took it")
    world.open("understudy", session=session, focus="the fence")
    told = read_told(world, world.wait_for(session, has_taken_over, "the understudy took over"))
    assert "Since this was written:" in told
    assert "HEAD was" in told
    assert "1 more prompt was given to demo" in told
    assert "the user asks to focus on: the fence" in told
    assert RULE not in told


def test_two_who_want_the_same_edited_packet_get_one_successor(world: RelayWorld) -> None:
    """Two terminals, one packet: one starts it, the other attaches or is told that it is under way."""
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    edit_text(save(world, session))
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(world.open("understudy", session=session)["session"])
        except RelayError as error:
            answers.append(error.sentence)

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
    assert min(map(str, answers)) == session
    assert set(answers) <= {session, "a handoff to understudy is under way"}
    assert RULE not in read_told(world, found)


def test_an_edited_packet_waits_over_a_restart(world: RelayWorld) -> None:
    """The daemon is no part of the promise."""
    session = begin(world)
    say(world, session, TASK)
    finish_turn(world, session)
    stem = save(world, session)
    edit_document(stem)
    restart(world)
    world.open("understudy", session=session)
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert RULE not in read_told(world, found)
    with open(f"{stem}.json", encoding="utf-8") as file:
        assert found.legs[-1].packet == json.load(file)["packet_id"]
