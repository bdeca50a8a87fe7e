"""The digest lane: the successor's own program sums up the record before its first turn, or is left out."""

import glob
import json
import os

import pytest

from agent_relay.domain.events.work import DigestEnded
from agent_relay.domain.session import Session
from agent_relay.system.disk.folders import get_folders
from tests.real.test_narrative import REFUSALS, at_work, list_runs, read_transcripts
from tests.support.provider.steps import Step, call, hang, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    find_daemon,
    kill_daemon,
    read_all_events,
    wait_heard,
    wait_taken_over,
)

DOCUMENT = "## Goal\nKeep the word heliotrope.\n\n## Files and roles\n- src/made_up.py"
MARKED = DOCUMENT + " [not in the record]"
GOES_ON = "I go on."


def get_predecessor(successor: str) -> str:
    """The agent that hands over."""
    return "codex" if successor == "claude" else "claude"


def set_config(world: World, text: str) -> None:
    """What the user's own file says."""
    folder = get_folders(world.env()).config
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.toml", "a", encoding="utf-8") as file:
        file.write(text)


def hand_over(world: World, terminal: Terminal, successor: str, *steps: Step) -> Session:
    """The session after a handoff to `successor`, whose program took these steps for its document."""
    predecessor = get_predecessor(successor)
    asked = len(world.requests(predecessor))
    world.play(successor, *steps, say(GOES_ON))
    done = world.run(world.relay(successor, "--digest", "--json"))
    assert done.returncode == 0, done.stderr
    session = wait_taken_over(world, terminal, successor)
    assert len(world.requests(predecessor)) == asked, "nothing is asked of the agent that goes"
    assert list_runs(world) == []
    return session


def read_packet(world: World, successor: str) -> dict[str, object]:
    """The packet the successor was given."""
    (path,) = glob.glob(f"{world.project}/.agent-relay/sessions/*/resume/0001-{successor}.json")
    with open(path, encoding="utf-8") as file:
        packet: dict[str, object] = json.load(file)
    return packet


def find_end(world: World) -> DigestEnded:
    """What the journal says came of the document."""
    (ended,) = [event.body for event in read_all_events(world) if isinstance(event.body, DigestEnded)]
    return ended


@pytest.mark.parametrize("successor", AGENTS)
def test_the_successor_sums_up_the_record_and_is_given_that(world: World, successor: str) -> None:
    """It has all that was said; what it makes up is marked, what it calls does nothing, none of it stays."""
    with at_work(world, get_predecessor(successor), "heliotrope") as (terminal, _):
        hand_over(world, terminal, successor, call(shell(successor, "touch trespass")), say(DOCUMENT))
        first = world.requests(successor)[0]
        assert "remember the word heliotrope" in first["text"]
        assert "<record>" in first["text"]
        assert MARKED in str(read_packet(world, successor)["narrative"])
        assert "Keep the word heliotrope." in wait_heard(world, terminal, successor, 3)
        ended = find_end(world)
        assert (ended.outcome, ended.agent) == ("written", successor)
        assert ended.input > 0
        assert not os.path.exists(f"{world.project}/trespass")
        if successor != "opencode" or glob.glob(f"{world.home}/.local/share/opencode/opencode.db"):
            assert "<record>" not in str(read_transcripts(world, successor))
        shown = world.run(world.relay("metrics", "--json"))
        assert json.loads(shown.stdout)["total"]["relay_tokens"] >= ended.input + ended.output


@pytest.mark.parametrize("successor", AGENTS)
def test_a_file_that_the_record_names_is_not_read_for_it(world: World, successor: str) -> None:
    """Agents read what stands behind an @ of a prompt; in a record anybody may have written it."""
    with open(f"{world.project}/private-notes.txt", "w", encoding="utf-8") as file:
        file.write("okapi and bongo\n")
    with at_work(world, get_predecessor(successor), "what @private-notes.txt says") as (terminal, _):
        asked = len(world.requests(successor))
        hand_over(world, terminal, successor, say("## Goal\nRead @private-notes.txt again."))
        first = world.requests(successor)[asked]
        assert "private-notes.txt" in first["text"]
        assert "okapi and bongo" not in json.dumps(first["body"])


@pytest.mark.parametrize("successor", AGENTS)
def test_a_successor_that_takes_too_long_is_left_alone(world: World, successor: str) -> None:
    """The handoff goes on with the plain packet, and the journal says why."""
    set_config(world, "[handoff]\ndigest_limit_s = 6\n")
    with at_work(world, get_predecessor(successor), "heliotrope") as (terminal, _):
        hand_over(world, terminal, successor, hang(60))
        assert "narrative" not in read_packet(world, successor)
        ended = find_end(world)
        assert (ended.outcome, ended.why) == ("failed", "no answer came within 6 s")


@pytest.mark.parametrize("successor", AGENTS)
def test_an_empty_document_is_left_out(world: World, successor: str) -> None:
    """An agent that says nothing has failed at nothing."""
    with at_work(world, get_predecessor(successor), "heliotrope") as (terminal, _):
        hand_over(world, terminal, successor, *[say(" ")] * 4)
        assert "narrative" not in read_packet(world, successor)
        assert find_end(world).outcome == "empty"


@pytest.mark.parametrize("successor", AGENTS)
def test_a_limit_in_the_middle_ends_the_document_only(world: World, successor: str) -> None:
    """It is told in the agent's own words; whether the agent can work it shows itself a moment later."""
    step, why = REFUSALS[successor]
    with at_work(world, get_predecessor(successor), "heliotrope") as (terminal, _):
        called = call(shell(successor, "touch trespass"))
        hand_over(world, terminal, successor, called, Step(**{**step, "times": 1}))
        assert "narrative" not in read_packet(world, successor)
        ended = find_end(world)
        assert ended.outcome == "failed"
        assert why in ended.why
        assert not os.path.exists(f"{world.project}/trespass")


def test_after_the_daemon_was_killed_the_handoff_goes_on_without_it(world: World) -> None:
    """What one daemon began the next one does not begin again."""
    with at_work(world, "claude", "heliotrope") as (terminal, _):
        world.play("codex", hang(60), say(GOES_ON))
        assert world.run(world.relay("relay", "--digest")).returncode == 0
        wait_heard(world, terminal, "codex")
        before = find_daemon(world)
        kill_daemon(world)
        wait_taken_over(world, terminal, "codex")
        assert find_daemon(world) not in (0, before)
        assert "narrative" not in read_packet(world, "codex")
        assert find_end(world).why == "agent-relay ended while it was written"


def test_nothing_is_asked_where_nobody_wants_it(world: World) -> None:
    """It costs tokens and time: only who asks for it has it."""
    with at_work(world, "claude", "heliotrope") as (terminal, _):
        world.play("codex", say(GOES_ON))
        assert world.run(world.relay("relay")).returncode == 0
        wait_taken_over(world, terminal, "codex")
        assert all("<record>" not in request["text"] for request in world.requests("codex"))
        assert not [event for event in read_all_events(world) if isinstance(event.body, DigestEnded)]


def test_the_configuration_asks_for_it_at_every_handoff(world: World) -> None:
    """A limit hands over by itself: nobody is there to write an option."""
    set_config(world, '[handoff]\ndigest = "successor"\n')
    with at_work(world, "claude", "heliotrope") as (terminal, _):
        world.play("codex", say(DOCUMENT), say(GOES_ON))
        assert world.run(world.relay("relay")).returncode == 0
        wait_taken_over(world, terminal, "codex")
        assert MARKED in str(read_packet(world, "codex")["narrative"])
