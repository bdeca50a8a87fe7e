"""A handoff whose successor summarises the record first, under a real daemon: asked once, and limited."""

import contextlib
import glob
import itertools
import json
import os
import time
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import DigestBegun, DigestEnded
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.relay_world import wait_until
from tests.support.writer import add_writer, let_it_write

pytestmark = pytest.mark.size("every")

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def begin_talk(world: WorkingWorld, **wish: object) -> str:
    """A session whose first agent answered one prompt."""
    return world.begin_worked("paint the shed in src/shed.py", **wish)


def ask_for_document(world: WorkingWorld, script: str, **wish: object) -> str:
    """A session that is handed over to `writer`, which first writes a document by `script`."""
    add_writer(world, fresh=True)
    let_it_write(world, script)
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True, **wish)
    return session


def wait_begun(world: WorkingWorld) -> None:
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the successor writes")


def has_passed(session: Session) -> bool:
    """Whether the writer is at work."""
    return session.agent == "writer" and session.handoff is None and len(session.done) == 1


def read_narrative(world: WorkingWorld, session: str) -> str:
    """The document in the packet of the session's handoff."""
    world.wait_for(session, has_passed, "the writer took over")
    return str(world.read_packet(session).get("narrative", ""))


def list_told(world: WorkingWorld, session: str) -> list[tuple[str, str]]:
    """What the journal says of documents: outcomes and reasons."""
    bodies = [event.body for event in world.events(session)]
    assert sum(isinstance(body, DigestBegun) for body in bodies) <= 1
    return [(body.outcome, body.why) for body in bodies if isinstance(body, DigestEnded)]


@pytest.mark.size("test")
def test_the_packet_has_what_the_successor_wrote_if_somebody_wants_it(world: WorkingWorld) -> None:
    """It reads the record, its inventions are marked, and no secret of either is kept.

    A handoff that nobody wants it for costs no more than it did.
    """
    script = f'cat > "$HOME/asked"; echo "## Goal"; echo "Paint src/shed.py, not src/made_up.py: {TOKEN}"'
    session = ask_for_document(world, script, focus="the door")
    narrative = read_narrative(world, session)
    assert "by writer from the record of this session, before its first turn" in narrative
    assert "Paint src/shed.py, not src/made_up.py [not in the record]:" in narrative
    assert TOKEN not in narrative
    assert list_told(world, session) == [("written", "")]
    asked = Path(f"{world.home}/asked")
    assert "user: paint the shed in src/shed.py" in asked.read_text("utf-8")
    assert "say most about it: the door" in asked.read_text("utf-8")
    assert os.listdir(f"{world.folders.runtime}/digests") == []
    asked.unlink()
    session = begin_talk(world, new=True)
    world.ask("use", session=session, agent="writer")
    assert read_narrative(world, session) == ""
    assert list_told(world, session) == []
    assert not asked.exists()


def test_a_successor_that_fails_at_it_takes_over_all_the_same(world: WorkingWorld) -> None:
    """The packet goes as it is; the journal has the agent's own reason."""
    session = ask_for_document(world, "echo 'no key' >&2; exit 7")
    assert read_narrative(world, session) == ""
    assert list_told(world, session) == [("failed", "no key")]


def test_a_handoff_cancelled_meanwhile_waits_for_no_document(world: WorkingWorld) -> None:
    """People who press Esc do not want to wait two minutes for a document nobody will read."""
    session = ask_for_document(world, 'touch "$HOME/begun"; sleep 300')
    wait_begun(world)
    world.ask("session.hold_back", session=session)
    world.wait_state(session, State.RESTING)
    assert list_told(world, session) == [("cancelled", "")]


def test_what_another_daemon_began_is_not_begun_again_and_leaves_nothing(world: WorkingWorld) -> None:
    """A daemon that is killed again and again at the same place would never hand over.

    The record is in the files of what was begun, and nobody may ask for a document ever again.
    """
    session = ask_for_document(world, 'echo x >> "$HOME/begun"; sleep 300')
    wait_begun(world)
    folder = f"{world.folders.runtime}/digests"
    assert len(os.listdir(folder)) == 1
    world.restart()
    wait_until(lambda: os.listdir(folder) == [], "its files are gone")
    assert read_narrative(world, session) == ""
    assert list_told(world, session) == [("failed", "agent-relay ended while it was written")]
    assert Path(f"{world.home}/begun").read_text("utf-8") == "x\n"


def test_a_document_that_was_kept_is_told_as_written_by_the_next_daemon(world: WorkingWorld) -> None:
    """It is in the packet: a journal that calls it failed would say what is not so."""
    add_writer(world, fresh=True)
    let_it_write(world, 'echo "## Goal"')
    session = begin_talk(world)
    frozen = world.freeze_at("before digest.ended")
    with world.connect() as connection, contextlib.suppress(RelayError):
        connection.request(
            "use", session=session, agent="writer", digest=True, env=world.environ, limit_s=0.5
        )
    world.wait_frozen(frozen)
    world.restart()
    assert "## Goal" in read_narrative(world, session)
    assert list_told(world, session) == [("written", "")]


def test_a_flood_of_output_delays_nobody(world: WorkingWorld) -> None:
    """The daemon answers while it reads what an agent printed, however much of that is no document."""
    session = ask_for_document(world, 'yes "{}" | head -c 12000000; touch "$HOME/begun"; exit 7')
    wait_begun(world)
    answered = [time.monotonic()]
    while not list_told(world, session):
        world.ask("session.list")
        answered.append(time.monotonic())
    assert [outcome for outcome, _ in list_told(world, session)] == ["failed"]
    slowest = max(later - earlier for earlier, later in itertools.pairwise(answered))
    assert slowest < (answered[-1] - answered[0]) / 4, answered


def test_two_sessions_have_documents_written_at_once(world: WorkingWorld) -> None:
    """The second begins its first one while the first session's is at work, and leaves that its files."""
    add_writer(world, fresh=True)
    script = 'touch "$HOME/begun.$$"; until [ -e "$HOME/go" ]; do sleep 0.1; done; echo "## Goal"'
    let_it_write(world, script)
    sessions = [begin_talk(world), begin_talk(world, new=True)]
    for number, session in enumerate(sessions, 1):
        world.ask("use", session=session, agent="writer", digest=True)
        wait_until(lambda: len(glob.glob(f"{world.home}/begun.*")) == number, "it writes")  # noqa: B023 - called at once
    assert len(os.listdir(f"{world.folders.runtime}/digests")) == 2
    Path(f"{world.home}/go").touch()
    for session in sessions:
        assert "## Goal" in read_narrative(world, session)
        assert list_told(world, session) == [("written", "")]
    assert os.listdir(f"{world.folders.runtime}/digests") == []


def test_a_document_of_inventions_is_cut_to_the_usual_length(world: WorkingWorld) -> None:
    """Each number is marked, and the marks make it eleven times as long."""
    session = ask_for_document(world, "seq -s ' ' 100000 112000")
    assert "100001 [not in the record]" in read_narrative(world, session)
    assert len(json.loads(world.path(session, "digest.json").read_bytes())["text"]) <= 64_000
