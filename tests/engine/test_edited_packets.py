"""What a user deletes from a packet the successor does not see; a stale one says so; one successor only."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets
from tests.support.at_work import WorkingWorld
from tests.support.handoffs import git
from tests.support.relay_world import wait_until
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

RULE = "Never touch the blue door."
TASK = f"paint the shed. {RULE}"


def save(world: WorkingWorld, session: str, target: str = "understudy") -> str:
    """The stem of a packet's files for `target`, saved without a launch."""
    world.open(target, no_launch=True, session=session)
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    return list_packets(folder)[-1][2].removesuffix(".json")


def strike(path: str, words: str = RULE) -> None:
    """A user deletes the words from a packet's text or document."""
    text = Path(path).read_text("utf-8")
    assert words in text
    Path(path).write_text(text.replace(words, ""), "utf-8")


def edit_text(stem: str) -> None:
    strike(f"{stem}.md")


def edit_document(stem: str) -> None:
    strike(f"{stem}.json")


CASES = [
    (edit, first, second)
    for edit in (edit_text, edit_document)
    for first, second in (("demo", "understudy"), ("understudy", "demo"))
]


@pytest.mark.parametrize(
    ("edit", "first", "second"), sized(CASES, CASES[:1], name=lambda case: f"{case[0].__name__}-{case[2]}")
)
def test_what_was_deleted_before_the_launch_the_successor_does_not_see(
    world: WorkingWorld, edit: Callable[[str], None], first: str, second: str
) -> None:
    """From text or document, by paste or by file: the promise users share packets on.

    The daemon is no part of it.
    """
    session = world.begin_worked(TASK, first)
    stem = save(world, session, second)
    edit(stem)
    world.restart()
    world.open(second, session=session)
    found = world.wait_for(session, lambda now: now.agent == second and len(now.done) == 1, "it took over")
    told = world.read_record(session)
    assert "paint the shed" in told
    assert RULE not in told
    assert found.done[0].sequence == 1
    assert found.legs[-1].packet == json.loads(Path(f"{stem}.json").read_bytes())["packet_id"]
    assert [row[0] for row in list_packets(os.path.dirname(os.path.dirname(stem)))] == [1]


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GIVEN = {"expect": ["eine Tür", f"login with {TOKEN}"], "rollback": "demo", "question": ["what is missing?"]}


def rewrite_text(stem: str) -> None:
    """Not a line of the text is left as it was."""
    Path(f"{stem}.md").write_text("Paint the shed, nothing else.\n", "utf-8")


@pytest.mark.parametrize("edit", [edit_text, edit_document, rewrite_text])
def test_what_is_expected_at_the_pickup_of_an_edited_packet_is_told(
    world: WorkingWorld, edit: Callable[[str], None]
) -> None:
    """In the text the successor reads and in the document; what was deleted stays deleted."""
    session = world.begin_worked(TASK)
    stem = save(world, session)
    edit(stem)
    world.open("understudy", session=session, **GIVEN)
    found = world.wait_handed_over(session)
    told = world.read_record(session).replace("\\u00fc", "ü")
    assert all(told.count(text) == 1 for text in ("eine Tür", "what is missing?"))
    assert RULE not in told
    assert TOKEN not in told
    assert found.done[0].sequence == 1
    document = json.loads(Path(f"{stem}.json").read_bytes())
    assert document["expectations"]["deliverables"][0] == "eine Tür"
    assert document["rollback"] == {"agent": "demo", "questions": ["what is missing?"]}
    assert TOKEN not in json.dumps(document)


def test_what_was_deleted_comes_back_with_no_later_packet(world: WorkingWorld) -> None:
    """The successor's successor is told from the document: an edit of the text counts there as well.

    An expectation nobody has judged goes on; the user sees it before it is told, and may strike it.
    """
    session = world.begin_worked(TASK)
    edit_text(save(world, session))
    world.open("understudy", session=session, expect=["a blue fence"])
    world.wait_handed_over(session)
    world.wait_state(session, State.READY)
    stem = save(world, session, "demo")
    assert RULE not in Path(f"{stem}.md").read_text("utf-8")
    strike(f"{stem}.md", "a blue fence")
    world.open("demo", session=session)
    world.wait_for(session, lambda now: len(now.done) == 2, "demo took over")
    assert "a blue fence" not in world.read_record(session).rpartition("<handoff-context")[2]


def test_an_untouched_packet_is_not_taken_for_the_present_state(world: WorkingWorld) -> None:
    """It was a look at what would be told; what happened since must be told too."""
    session = world.begin_worked(TASK)
    save(world, session)
    world.open("understudy", session=session)
    assert world.wait_handed_over(session).done[0].sequence == 2


def test_a_stale_edited_packet_says_what_happened_since(world: WorkingWorld) -> None:
    """The user's edit is honoured, and the successor learns that tree and work went on."""
    git(world.project, "init")
    git(world.project, "commit", "--allow-empty", "-m", "one")
    session = world.begin_worked(TASK)
    edit_text(save(world, session))
    git(world.project, "commit", "--allow-empty", "-m", "two")
    world.say(session, "and the fence")
    wait_until(lambda: "and the fence" in world.read_record(session), "the agent took it")
    world.open("understudy", session=session, focus="the fence")
    world.wait_handed_over(session)
    told = world.read_record(session)
    assert "Since this was written:" in told
    assert "HEAD was" in told
    assert "1 more prompt was given to demo" in told
    assert "the user asks to focus on: the fence" in told
    assert RULE not in told


def test_two_who_want_the_same_edited_packet_get_one_successor(world: WorkingWorld) -> None:
    """Two terminals, one packet: one starts it, the other attaches or is told that it is under way."""
    session = world.begin_worked(TASK)
    edit_text(save(world, session))
    answers = world.open_both("understudy", {"session": session}, {"session": session})
    found = world.wait_handed_over(session)
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
    assert session in answers
    assert set(answers) <= {session, "a handoff to understudy is under way"}
    assert RULE not in world.read_record(session)
