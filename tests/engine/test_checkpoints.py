"""Checkpoints of sessions at work: made at a turn's end, kept without secrets, used when a record goes."""

import json
import os
from functools import partial
from pathlib import Path

import pytest

from agent_relay.domain.events.session import CheckpointMade
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.handoffs import git
from tests.support.mcp_client import read_token
from tests.support.relay_world import wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("every")


def list_checkpoints(world: WorkingWorld, session: str) -> list[CheckpointMade]:
    return [event.body for event in world.events(session) if isinstance(event.body, CheckpointMade)]


def has_checkpoint(world: WorkingWorld, session: str, prompt: str) -> bool:
    made = list_checkpoints(world, session)
    return bool(made) and made[-1].prompt[:8] == prompt[:8]


def take_turns(world: WorkingWorld, session: str, *prompts: str) -> list[CheckpointMade]:
    """The checkpoints once the agent answered `prompts` one after the other."""
    for prompt in prompts:
        world.say(session, prompt)
        wait_until(partial(has_checkpoint, world, session, prompt), f"a checkpoint of {prompt}")
    return list_checkpoints(world, session)


def read_kept(world: WorkingWorld, session: str) -> list[list[str]]:
    """What the session's checkpoints kept of the conversation, each for itself."""
    lines = world.path(session, "checkpoints.jsonl").read_bytes().splitlines()
    return [[said["text"] for said in json.loads(line)["facts"]["conversation"]] for line in lines]


def save(world: WorkingWorld, session: str) -> tuple[str, dict[str, object]]:
    """The session's packet for the understudy: its text and its document."""
    world.open("understudy", session=session, no_launch=True)
    return world.read_saved(session)


@pytest.mark.size("test")
def test_every_turn_ends_with_a_checkpoint_of_what_was_said(world: WorkingWorld) -> None:
    """The journal has prompt, answer and the conversation's turn; the file beside it what was said.

    The file is its user's and holds no secret: nor does the branch, whose name need be no text. The next
    daemon goes on where the last one was. A crash within a write costs that checkpoint only.
    """
    git(world.project, "init", "--quiet")
    git(world.project, "symbolic-ref", "HEAD", b"refs/heads/caf\xe9/AKIAIOSFODNN7EXAMPLE")
    session = world.begin()
    take_turns(world, session, "paint the shed")
    world.restart()
    world.wait_state(session, State.READY)
    made = take_turns(world, session, "the key is AKIAIOSFODNN7EXAMPLE, take it")
    told = "the key is [redacted: aws-key], take it"
    assert [(one.prompt, one.answer, one.turns, one.kept, one.lacks) for one in made] == [
        ("paint the shed", "demo heard you", 1, "checkpoints.jsonl", ""),
        (told, "demo heard you", 2, "checkpoints.jsonl", ""),
    ]
    assert {one.branch for one in made} == {"caf\\xe9/[redacted: aws-key]"}
    assert read_kept(world, session) == [["paint the shed", "demo heard you"], [told, "demo heard you"]]
    path = world.path(session, "checkpoints.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("ab") as file:
        file.write(b'{"leg":"half')
    take_turns(world, session, "always wear gloves")
    world.find_record(session).unlink()
    text, _ = save(world, session)
    assert "paint the shed" in text
    assert "always wear gloves" in text


def test_what_an_agent_noted_is_in_the_next_checkpoint_and_the_packet_once(world: WorkingWorld) -> None:
    """It is its own statement: nothing the user settled, and nothing to repeat with every turn."""
    session = world.begin()
    take_turns(world, session, "paint the shed")
    leg, token = read_token(world, session)
    asked = {"leg": leg, "token": token, "note": "the north wall is dry", "next_step": "paint the south wall"}
    world.ask("agent.checkpoint", **asked)
    made = take_turns(world, session, "go on", "and on")
    assert [(one.note, one.next_step) for one in made] == [
        ("", ""),
        ("the north wall is dry", "paint the south wall"),
        ("", ""),
    ]
    world.restart()
    assert take_turns(world, session, "once more")[-1].note == ""
    shown = run(world, "packet", "show", session, "--now", "--text").out
    assert shown.count("the north wall is dry") == 1
    assert "(written by demo, " in shown
    document = json.loads(run(world, "packet", "show", session, "--now", "--json").out)
    assert "the north wall is dry" in document["narrative"]
    assert document["narrative_source"]["agent"] == "demo"
    assert "north wall" not in json.dumps({**document, "narrative": ""})


def test_a_packet_has_the_words_of_a_record_that_is_lost(world: WorkingWorld) -> None:
    """Prompts and answers of all turns are in it, and it says where they are from."""
    for damage in ("deleted", "cut off", "rewritten"):
        session = world.begin(new=True)
        take_turns(world, session, "we use the blue paint for the shed", "always wear gloves")
        spoil(world.find_record(session), damage)
        text, packet = save(world, session)
        assert "we use the blue paint for the shed" in text, damage
        assert "always wear gloves" in text, damage
        assert "turn 2 and before is from relay's checkpoints" in str(packet["restored"]), damage
        assert str(packet["restored"]) in text, damage
        assert (packet["turn_count"], packet.get("unread")) == (2, None), damage


def spoil(record: Path, damage: str) -> None:
    if damage == "deleted":
        record.unlink()
    elif damage == "cut off":
        os.truncate(record, 150)
    else:
        record.write_bytes(b"\0" * record.stat().st_size)


def test_lines_nobody_understands_are_told_of_beside_what_was_kept(world: WorkingWorld) -> None:
    """What the agent wrote after the last checkpoint may be in them."""
    session = world.begin()
    take_turns(world, session, "we use the blue paint")
    world.stop(session)
    Path(world.find_record(session)).write_text('{"kind":"turn","of":"9"}\n' * 3, "utf-8")
    text, packet = save(world, session)
    assert "we use the blue paint" in text
    assert "3 of 3 lines of demo's own record could not be understood" in str(packet["not_understood"])
    assert str(packet["last_lines"]).splitlines()[-1] == '{"kind":"turn","of":"9"}'


def test_a_whole_record_counts_more_and_a_lost_one_is_shown_and_searched(world: WorkingWorld) -> None:
    """With a whole one nothing is restored. `packet show --now` writes nothing, and has what a lost one said.

    The journal has the prompts alone; answers are recalled all the same.
    """
    session = world.begin()
    take_turns(world, session, "we use the blue paint", "always wear gloves")
    text, packet = save(world, session)
    assert "we use the blue paint" in text
    assert "restored" not in packet
    world.find_record(session).unlink()
    told = run_command(world, "packet", "show", "--now", "--to", "understudy", "--text")
    assert "we use the blue paint" in told
    assert "is from relay's checkpoints" in told
    document = json.loads(run_command(world, "packet", "show", "--now", "--json"))
    assert (document["previous_agent"], document["target_agent"]) == ("demo", "understudy")
    assert world.session(session).packets == 1
    assert "Nothing was written" in run_command(world, "packet", "show", session, "--now")
    world.stop(session)
    found = json.loads(run_command(world, "recall", "demo heard you", "--json"))
    assert "demo heard you" in found["turns"][0]["text"]
    assert "is from relay's checkpoints" in found["lacks"][0]


def test_what_is_left_of_a_record_and_newer_is_added(world: WorkingWorld) -> None:
    """An agent may begin its file anew and go on."""
    session = world.begin()
    take_turns(world, session, "we use the blue paint")
    world.find_record(session).unlink()
    world.run_out(session)
    text, packet = world.read_saved(session)
    assert "we use the blue paint" in text
    assert "out" in str(packet["unprocessed_prompt"])


def test_a_record_that_begins_anew_stays_lost(world: WorkingWorld) -> None:
    """The checkpoint after the loss knows a new file, which is whole and lacks what the old one held."""
    session = world.begin()
    take_turns(world, session, "we use the blue paint")
    record = world.find_record(session)
    with open(record, "rb") as file:
        first = file.readline()
    with open(record, "wb") as file:
        file.write(first)
    made = take_turns(world, session, "always wear gloves")
    assert [one.turns for one in made] == [1, 2]
    text, packet = save(world, session)
    assert "we use the blue paint" in text
    assert "always wear gloves" in text
    assert (packet["turn_count"], "restored" in packet) == (2, True)


@pytest.mark.parametrize("point", ["before checkpoint", "after checkpoint"])
def test_a_daemon_killed_while_it_keeps_a_checkpoint_leaves_nothing_to_repair(
    world: WorkingWorld, point: str
) -> None:
    """The next one keeps what is missing with its own first checkpoint, and nothing twice."""
    session = world.begin()
    daemon = world.freeze_at(point)
    world.wait_state(session, State.READY)
    world.say(session, "paint the shed")
    world.wait_frozen(daemon)
    world.restart()
    world.wait_state(session, State.READY)
    assert take_turns(world, session, "and the door")[-1].turns == 2
    said = [text for texts in read_kept(world, session) for text in texts]
    assert said == ["paint the shed", "demo heard you", "and the door", "demo heard you"]
    world.find_record(session).unlink()
    text, _ = save(world, session)
    assert "paint the shed" in text
    assert "and the door" in text


def run_command(world: WorkingWorld, *words: str) -> str:
    """What the command prints; it must succeed."""
    done = run(world, *words)
    assert done.status == 0, done.err
    return done.out
