"""A person asks for a handoff document behind the relay key, and from the command line."""

import json
import os
from collections.abc import Iterator

import pytest

from tests.support.at_work import working_world
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.seats import run, seat
from tests.support.writer import add_writer, begin_talk, let_it_write

pytestmark = pytest.mark.size("every")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine on which one agent writes handoff documents."""
    with working_world() as made:
        add_writer(made)
        yield made


@pytest.mark.size("test")
def test_a_document_is_written_and_the_next_agent_starts_with_it(world: RelayWorld) -> None:
    """One line behind the relay key is all that a handoff takes."""
    let_it_write(world, 'while ! test -e "$HOME/go"; do sleep 0.05; done; echo "## Goal"; echo Paint.')
    session = begin_talk(world)
    with seat(world, "attach", shows="ready | writer") as person:
        person.type(b"\x1d/handoff the door\r", shows="the agent writes a handoff document 1 s   Esc cancels")
        with open(f"{world.home}/go", "w", encoding="utf-8"):
            pass
        found = world.wait_for(session, lambda now: len(now.done) == 1, "the next agent took over")
        person.wait_for("ready | demo")
        with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}", "rb") as file:
            packet = json.load(file)
        assert packet["narrative"].endswith("## Goal\nPaint.")
        assert packet["focus"] == "the door"


def test_escape_cancels_the_document_and_an_agent_that_ends_ends_the_waiting(world: RelayWorld) -> None:
    """Changing one's mind costs nothing: no handoff, no process, the screen as it was, other keys kept.

    Nobody is kept in front of a spinner for an agent that is gone.
    """
    let_it_write(world, 'touch "$HOME/begun"; sleep 600')
    session = begin_talk(world)
    living = world.find_workers()
    with seat(world, "attach", shows="ready | writer") as person:
        person.type(b"\x1d/handoff\r")
        wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the agent writes")
        person.wait_for("Esc cancels")
        person.type(b"half a line")
        person.type(b"\x1b", shows="Handoff cancelled")
        person.type(b" ", shows="> half a line")
        assert world.session(session).handoff is None
        assert world.session(session).agent == "writer"
        clients = {pid for pid, line in world.processes().items() if " attach" in line}
        assert world.find_workers() - clients <= living
        os.unlink(f"{world.home}/begun")
        person.type(b"\x1d/handoff\r")
        wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the agent writes again")
        world.ask("session.stop", session=session)
        person.wait_for_end()


def test_a_document_that_is_none_hands_nothing_over(world: RelayWorld) -> None:
    """The person reads why, and may hand over without one."""
    session = begin_talk(world)
    with seat(world, "attach") as person:
        for script, message in (
            ("echo 'no credit left' >&2; exit 3", "Handoff failed: no credit left"),
            ("echo", "The handoff document is empty"),
        ):
            let_it_write(world, script)
            person.wait_for("ready | writer")
            person.type(b"\x1d/handoff\r", shows=message)
            person.type(b" ")
        person.wait_for("ready | writer")
    assert world.session(session).handoff is None
    assert not world.session(session).done


def test_a_document_can_be_had_from_the_command_line(world: RelayWorld) -> None:
    """Scripts ask for it while the agent works; a failure is one sentence and a status."""
    let_it_write(world, 'cat > "$HOME/asked"; echo "## Goal"; echo Paint.')
    session = begin_talk(world)
    done = run(world, "handoff", "--narrative", "--focus", "the door")
    assert (done.status, done.out, done.err) == (0, "## Goal\nPaint.\n", "")
    with open(f"{world.home}/asked", encoding="utf-8") as file:
        assert "the door" in file.read()
    told = json.loads(run(world, "handoff", "narrative", session, "--json").out)
    assert (told["session"], told["outcome"]) == (session, "written")
    let_it_write(world, "echo 'no credit left' >&2; exit 3")
    failed = run(world, "handoff", "--narrative")
    assert (failed.status, failed.out) == (1, "")
    assert "Handoff failed: no credit left" in failed.err
