"""Checkpoints of sessions at work: made at a turn's end, kept without secrets, used when a record goes."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest

from agent_relay.domain.events.session import CheckpointMade
from agent_relay.domain.names import get_session_folder
from agent_relay.domain.state import State
from tests.support.at_work import begin, has_taken_over, restart, say
from tests.support.mcp_client import read_token
from tests.support.relay_world import RelayWorld, is_stopped, wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("test")


def list_checkpoints(world: RelayWorld, session: str) -> list[CheckpointMade]:
    return [event.body for event in world.events(session) if isinstance(event.body, CheckpointMade)]


def has_checkpoint(world: RelayWorld, session: str, prompt: str) -> bool:
    made = list_checkpoints(world, session)
    return bool(made) and made[-1].prompt[:8] == prompt[:8]


def take_turns(world: RelayWorld, session: str, *prompts: str) -> list[CheckpointMade]:
    """The checkpoints once the agent answered `prompts` one after the other."""
    for prompt in prompts:
        say(world, session, prompt)
        wait_until(partial(has_checkpoint, world, session, prompt), f"a checkpoint of {prompt}")
    return list_checkpoints(world, session)


def find_record(world: RelayWorld, session: str) -> str:
    leg = world.session(session).leg
    assert leg is not None
    return f"{world.environ['HOME']}/.demo-agent/{leg.agent}/{leg.native_id}.jsonl"


def read_packet(world: RelayWorld, session: str, name: str) -> tuple[str, dict[str, object]]:
    stem = f"{get_session_folder(world.project, session)}/resume/{name}"
    with open(f"{stem}.md", encoding="utf-8") as text, open(f"{stem}.json", "rb") as document:
        return text.read(), json.load(document)


def test_every_turn_ends_with_a_checkpoint_of_what_was_said(world: RelayWorld) -> None:
    """The journal has prompt, answer and the conversation's turn; the file beside it what was said."""
    session = begin(world)
    made = take_turns(world, session, "paint the shed", "and the door")
    assert [(one.prompt, one.answer, one.turns, one.kept, one.lacks) for one in made] == [
        ("paint the shed", "demo heard you", 1, "checkpoints.jsonl", ""),
        ("and the door", "demo heard you", 2, "checkpoints.jsonl", ""),
    ]


def test_what_an_agent_noted_is_in_the_next_checkpoint_and_the_packet_once(world: RelayWorld) -> None:
    """It is its own statement: nothing the user settled, and nothing to repeat with every turn."""
    session = begin(world)
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
    restart(world)
    assert take_turns(world, session, "once more")[-1].note == ""
    shown = run(world, "packet", "show", session, "--now", "--text").out
    assert shown.count("the north wall is dry") == 1
    assert "(written by demo, " in shown
    document = json.loads(run(world, "packet", "show", session, "--now", "--json").out)
    assert "the north wall is dry" in document["narrative"]
    assert document["narrative_source"]["agent"] == "demo"
    assert "north wall" not in json.dumps({**document, "narrative": ""})


def test_what_a_checkpoint_keeps_is_for_its_user_and_holds_no_secrets(world: RelayWorld) -> None:
    """What a person typed by mistake must not be in one more file."""
    session = begin(world)
    take_turns(world, session, "the key is AKIAIOSFODNN7EXAMPLE, take it")
    path = f"{get_session_folder(world.project, session)}/checkpoints.jsonl"
    with open(path, encoding="utf-8") as file:
        kept = file.read()
    assert "AKIAIOSFODNN7EXAMPLE" not in kept
    assert "[redacted: aws-key]" in kept
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_branch_of_any_name_is_kept_without_secrets(world: RelayWorld) -> None:
    """Its name need be no text, and people put the ticket's link into it with all that is in that."""
    git = ("git", "-C", world.project)
    subprocess.run([*git, "init", "--quiet"], check=True)
    name = b"refs/heads/caf\xe9/AKIAIOSFODNN7EXAMPLE"
    subprocess.run([*git, "symbolic-ref", "HEAD", name], check=True)
    [made] = take_turns(world, begin(world), "paint the shed")
    assert made.branch == "caf\\xe9/[redacted: aws-key]"


@pytest.mark.parametrize("damage", ["deleted", "cut off", "rewritten"])
def test_a_packet_has_the_words_of_a_record_that_is_lost(world: RelayWorld, damage: str) -> None:
    """Prompts and answers of all turns are in it, and it says where they are from."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint for the shed", "always wear gloves")
    spoil(find_record(world, session), damage)
    world.open("understudy", no_launch=True)
    text, packet = read_packet(world, session, "0001-understudy")
    assert "we use the blue paint for the shed" in text
    assert "always wear gloves" in text
    assert "turn 2 and before is from relay's checkpoints" in str(packet["restored"])
    assert str(packet["restored"]) in text
    assert (packet["turn_count"], packet.get("unread")) == (2, None)


def spoil(record: str, damage: str) -> None:
    if damage == "deleted":
        os.unlink(record)
    elif damage == "cut off":
        os.truncate(record, 150)
    else:
        with open(record, "r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(b"\0" * len(data))


def test_lines_nobody_understands_are_told_of_beside_what_was_kept(world: RelayWorld) -> None:
    """What the agent wrote after the last checkpoint may be in them."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint")
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    with open(find_record(world, session), "w", encoding="utf-8") as file:
        file.write('{"kind":"turn","of":"9"}\n' * 3)
    world.open("understudy", session=session, no_launch=True)
    text, packet = read_packet(world, session, "0001-understudy")
    assert "we use the blue paint" in text
    assert "3 of 3 lines of demo's own record could not be understood" in str(packet["not_understood"])
    assert str(packet["last_lines"]).splitlines()[-1] == '{"kind":"turn","of":"9"}'


def test_a_whole_record_counts_more_than_its_checkpoints(world: RelayWorld) -> None:
    """Then nothing is restored, and the packet says nothing of it."""
    session = begin(world)
    take_turns(world, session, "paint the shed")
    world.open("understudy", no_launch=True)
    text, packet = read_packet(world, session, "0001-understudy")
    assert "paint the shed" in text
    assert "restored" not in packet


def test_what_is_left_of_a_record_and_newer_is_added(world: RelayWorld) -> None:
    """An agent may begin its file anew and go on."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint")
    os.unlink(find_record(world, session))
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over")
    text, packet = read_packet(world, session, "0001-understudy")
    assert "we use the blue paint" in text
    assert "out" in str(packet["unprocessed_prompt"])


def test_a_record_that_begins_anew_stays_lost(world: RelayWorld) -> None:
    """The checkpoint after the loss knows a new file, which is whole and lacks what the old one held."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint")
    record = find_record(world, session)
    with open(record, "rb") as file:
        first = file.readline()
    with open(record, "wb") as file:
        file.write(first)
    made = take_turns(world, session, "always wear gloves")
    assert [one.turns for one in made] == [1, 2]
    world.open("understudy", no_launch=True)
    text, packet = read_packet(world, session, "0001-understudy")
    assert "we use the blue paint" in text
    assert "always wear gloves" in text
    assert (packet["turn_count"], "restored" in packet) == (2, True)


def test_the_next_daemon_goes_on_where_the_last_one_was(world: RelayWorld) -> None:
    """Nothing is kept twice, and nothing is missing."""
    session = begin(world)
    take_turns(world, session, "paint the shed")
    restart(world)
    world.wait_for(session, lambda found: found.state is State.READY, "it was adopted")
    made = take_turns(world, session, "and the door")
    assert [one.turns for one in made] == [1, 2]
    path = f"{get_session_folder(world.project, session)}/checkpoints.jsonl"
    with open(path, "rb") as file:
        texts = [[said["text"] for said in json.loads(line)["facts"]["conversation"]] for line in file]
    assert texts == [["paint the shed", "demo heard you"], ["and the door", "demo heard you"]]


@pytest.mark.parametrize("point", ["before checkpoint", "after checkpoint"])
def test_a_daemon_killed_while_it_keeps_a_checkpoint_leaves_nothing_to_repair(
    world: RelayWorld, point: str
) -> None:
    """The next one keeps what is missing with its own first checkpoint, and nothing twice."""
    session = begin(world)
    world.kill_daemons()
    daemon = world.start_daemon(pause_at=point)
    world.wait_for(session, lambda found: found.state is State.READY, "it was adopted")
    say(world, session, "paint the shed")
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {point}")
    restart(world)
    world.wait_for(session, lambda found: found.state is State.READY, "it was adopted again")
    assert take_turns(world, session, "and the door")[-1].turns == 2
    path = f"{get_session_folder(world.project, session)}/checkpoints.jsonl"
    with open(path, "rb") as file:
        said = [said["text"] for line in file for said in json.loads(line)["facts"]["conversation"]]
    assert said == ["paint the shed", "demo heard you", "and the door", "demo heard you"]
    os.unlink(find_record(world, session))
    world.open("understudy", no_launch=True)
    text, _ = read_packet(world, session, "0001-understudy")
    assert "paint the shed" in text
    assert "and the door" in text


def test_a_torn_line_costs_that_checkpoint_only(world: RelayWorld) -> None:
    """A crash in the middle of a write leaves half a line, which the next one cuts off."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint")
    path = f"{get_session_folder(world.project, session)}/checkpoints.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"leg":"half')
    take_turns(world, session, "always wear gloves")
    os.unlink(find_record(world, session))
    world.open("understudy", no_launch=True)
    text, _ = read_packet(world, session, "0001-understudy")
    assert "we use the blue paint" in text
    assert "always wear gloves" in text


def test_the_packet_of_this_moment_needs_no_handoff(world: RelayWorld) -> None:
    """`packet show --now` writes nothing, and has what a lost record said."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint", "always wear gloves")
    os.unlink(find_record(world, session))
    told = run_command(world, "packet", "show", "--now", "--to", "understudy", "--text")
    assert "we use the blue paint" in told
    assert "is from relay's checkpoints" in told
    document = json.loads(run_command(world, "packet", "show", "--now", "--json"))
    assert (document["previous_agent"], document["target_agent"]) == ("demo", "understudy")
    assert world.session(session).packets == 0
    assert "Nothing was written" in run_command(world, "packet", "show", session, "--now")


def test_recall_searches_what_checkpoints_kept_of_a_lost_record(world: RelayWorld) -> None:
    """The journal has the prompts alone; answers are found all the same."""
    session = begin(world)
    take_turns(world, session, "we use the blue paint")
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    os.unlink(find_record(world, session))
    found = json.loads(run_command(world, "recall", "demo heard you", "--json"))
    assert "demo heard you" in found["turns"][0]["text"]
    assert "is from relay's checkpoints" in found["lacks"][0]


def run_command(world: RelayWorld, *words: str) -> str:
    """What the command prints; it must succeed."""
    command = [sys.executable, "-m", "agent_relay", *words]
    done = subprocess.run(
        command, cwd=world.project, env=world.environ, capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
