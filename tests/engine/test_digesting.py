"""A handoff whose successor summarises the record first, under a real daemon: asked once, and limited."""

import contextlib
import glob
import itertools
import json
import os
import time

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import DigestBegun, DigestEnded
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.store.journal import read_events
from tests.support.at_work import begin, finish_turn, say
from tests.support.relay_world import RelayWorld, is_stopped, kill, wait_until
from tests.support.writer import add_writer, let_it_write

pytestmark = pytest.mark.size("test")

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def add_successor(world: RelayWorld, script: str) -> None:
    """The user has an agent `writer` that can write documents from digests, by `script`."""
    add_writer(world, fresh=True)
    let_it_write(world, script)


def begin_talk(world: RelayWorld, **wish: object) -> str:
    """A session whose first agent answered one prompt."""
    session = begin(world, **wish)
    say(world, session, "paint the shed in src/shed.py")
    finish_turn(world, session)
    return session


def has_passed(session: Session) -> bool:
    """Whether the writer is at work."""
    return session.agent == "writer" and session.handoff is None and len(session.done) == 1


def read_narrative(world: RelayWorld, session: str) -> str:
    """The document in the packet of the session's handoff."""
    found = world.wait_for(session, has_passed, "the writer took over")
    with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}", "rb") as file:
        return str(json.load(file).get("narrative", ""))


def list_told(world: RelayWorld, session: str) -> list[tuple[str, str]]:
    """What the journal says of documents: outcomes and reasons."""
    journal = f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl"
    bodies = [event.body for event in read_events(journal)]
    assert sum(isinstance(body, DigestBegun) for body in bodies) <= 1
    return [(body.outcome, body.why) for body in bodies if isinstance(body, DigestEnded)]


def test_the_packet_has_what_the_successor_wrote(world: RelayWorld) -> None:
    """It reads the record, its inventions are marked, and no secret of either is kept."""
    script = f'cat > "$HOME/asked"; echo "## Goal"; echo "Paint src/shed.py, not src/made_up.py: {TOKEN}"'
    add_successor(world, script)
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True, focus="the door")
    narrative = read_narrative(world, session)
    assert "by writer from the record of this session, before its first turn" in narrative
    assert "Paint src/shed.py, not src/made_up.py [not in the record]:" in narrative
    assert TOKEN not in narrative
    assert list_told(world, session) == [("written", "")]
    with open(f"{world.home}/asked", encoding="utf-8") as file:
        asked = file.read()
    assert "user: paint the shed in src/shed.py" in asked
    assert "say most about it: the door" in asked
    assert os.listdir(f"{world.folders.runtime}/digests") == []


def test_nothing_is_written_unless_somebody_wants_it(world: RelayWorld) -> None:
    """A handoff costs no more than it did."""
    add_successor(world, 'touch "$HOME/asked"; echo "## Goal"')
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer")
    assert read_narrative(world, session) == ""
    assert list_told(world, session) == []
    assert not os.path.exists(f"{world.home}/asked")


def test_a_successor_that_fails_at_it_takes_over_all_the_same(world: RelayWorld) -> None:
    """The packet goes as it is; the journal has the agent's own reason."""
    add_successor(world, "echo 'no key' >&2; exit 7")
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True)
    assert read_narrative(world, session) == ""
    assert list_told(world, session) == [("failed", "no key")]


def test_a_handoff_cancelled_meanwhile_waits_for_no_document(world: RelayWorld) -> None:
    """People who press Esc do not want to wait two minutes for a document nobody will read."""
    add_successor(world, 'touch "$HOME/begun"; sleep 300')
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True)
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the successor writes")
    world.ask("session.hold_back", session=session)
    world.wait_for(session, lambda found: found.state is State.RESTING, "the session rests")
    assert list_told(world, session) == [("cancelled", "")]


def test_what_another_daemon_began_is_not_begun_again(world: RelayWorld) -> None:
    """A daemon that is killed again and again at the same place would never hand over."""
    add_successor(world, 'echo x >> "$HOME/begun"; sleep 300')
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True)
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the successor writes")
    world.kill_daemons()
    world.start_daemon()
    assert read_narrative(world, session) == ""
    assert list_told(world, session) == [("failed", "agent-relay ended while it was written")]
    with open(f"{world.home}/begun", encoding="utf-8") as file:
        assert file.read() == "x\n"


def test_a_document_that_was_kept_is_told_as_written_by_the_next_daemon(world: RelayWorld) -> None:
    """It is in the packet: a journal that calls it failed would say what is not so."""
    add_successor(world, 'echo "## Goal"')
    session = begin_talk(world)
    world.kill_daemons()
    frozen = world.start_daemon(pause_at="before digest.ended")
    with world.connect() as connection, contextlib.suppress(RelayError):
        connection.request(
            "use", session=session, agent="writer", digest=True, env=world.environ, limit_s=0.5
        )
    wait_until(lambda: is_stopped(frozen.pid), "the daemon froze with the document kept")
    kill(frozen.pid)
    frozen.wait()
    world.start_daemon()
    assert "## Goal" in read_narrative(world, session)
    assert list_told(world, session) == [("written", "")]


def test_a_daemon_removes_what_another_ones_documents_left(world: RelayWorld) -> None:
    """Nobody may ask for a document ever again, and the record is in the files of one that was begun."""
    add_successor(world, 'touch "$HOME/begun"; sleep 300')
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True)
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the successor writes")
    folder = f"{world.folders.runtime}/digests"
    assert len(os.listdir(folder)) == 1
    world.kill_daemons()
    world.start_daemon()
    wait_until(lambda: os.listdir(folder) == [], "its files are gone")


def test_a_flood_of_output_delays_nobody(world: RelayWorld) -> None:
    """The daemon answers while it reads what an agent printed, however much of that is no document."""
    script = 'yes "{}" | head -c 12000000; touch "$HOME/flooded"; exit 7'
    add_successor(world, script)
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True)
    wait_until(lambda: os.path.exists(f"{world.home}/flooded"), "the successor has printed it")
    answered = [time.monotonic()]
    while not list_told(world, session):
        world.ask("session.list")
        answered.append(time.monotonic())
    assert [outcome for outcome, _ in list_told(world, session)] == ["failed"]
    slowest = max(later - earlier for earlier, later in itertools.pairwise(answered))
    assert slowest < (answered[-1] - answered[0]) / 4, answered


def test_two_sessions_have_documents_written_at_once(world: RelayWorld) -> None:
    """The second begins its first one while the first session's is at work, and leaves that its files."""
    add_successor(
        world, 'touch "$HOME/begun.$$"; until [ -e "$HOME/go" ]; do sleep 0.1; done; echo "## Goal"'
    )
    sessions = [begin_talk(world), begin_talk(world, new=True)]
    for number, session in enumerate(sessions, 1):
        world.ask("use", session=session, agent="writer", digest=True)
        wait_until(lambda: len(glob.glob(f"{world.home}/begun.*")) == number, "it writes")  # noqa: B023 - called at once
    assert len(os.listdir(f"{world.folders.runtime}/digests")) == 2
    with open(f"{world.home}/go", "wb"):
        pass
    for session in sessions:
        assert "## Goal" in read_narrative(world, session)
        assert list_told(world, session) == [("written", "")]
    assert os.listdir(f"{world.folders.runtime}/digests") == []


def test_a_document_of_inventions_is_cut_to_the_usual_length(world: RelayWorld) -> None:
    """Each number is marked, and the marks make it eleven times as long."""
    add_successor(world, "seq -s ' ' 100000 112000")
    session = begin_talk(world)
    world.ask("use", session=session, agent="writer", digest=True)
    assert "100001 [not in the record]" in read_narrative(world, session)
    with open(f"{world.project}/.agent-relay/sessions/{session}/digest.json", encoding="utf-8") as file:
        assert len(json.load(file)["text"]) <= 64_000
