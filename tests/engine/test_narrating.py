"""Handoff documents as the daemon has them written: in a fork, bounded, cancellable, without secrets."""

import glob
import json
import os
import threading

import pytest

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import DaemonUnreachableError, WrongUseError
from tests.support.at_work import begin, has_taken_over
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.writer import add_writer, begin_talk, let_it_write

pytestmark = pytest.mark.size("test")

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def read_all(world: RelayWorld) -> dict[str, bytes]:
    """Every transcript of the writer."""
    found = {}
    for path in glob.glob(f"{world.home}/.demo-agent/writer/*"):
        with open(path, "rb") as file:
            found[path] = file.read()
    return found


def read_asked(world: RelayWorld, name: str) -> str:
    with open(f"{world.home}/{name}", encoding="utf-8") as file:
        return file.read()


def list_runs(world: RelayWorld) -> list[str]:
    return os.listdir(f"{world.folders.runtime}/narratives")


def ask_meanwhile(world: RelayWorld, session: str) -> tuple[threading.Thread, dict[str, object]]:
    """A face waits for a document while the test goes on."""
    told: dict[str, object] = {}
    asking = threading.Thread(target=lambda: told.update(world.ask("narrate", session=session)))
    asking.start()
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the agent writes")
    return asking, told


def test_the_next_packet_takes_the_document_along(world: RelayWorld) -> None:
    """What the agent wrote while it could is in the successor's hands, when and by whom is told."""
    add_writer(world)
    let_it_write(world, 'cat > "$HOME/asked"; echo "## Goal"; echo "Paint the shed."')
    session = begin_talk(world)
    told = world.ask("narrate", session=session, focus="the door")
    assert (told["outcome"], told["text"]) == ("written", "## Goal\nPaint the shed.")
    assert "say most about it: the door" in read_asked(world, "asked")
    world.ask("use", session=session, agent="understudy")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}", "rb") as file:
        narrative = json.load(file)["narrative"]
    assert narrative.startswith("(written 20")
    assert narrative.endswith(" UTC)\n\n## Goal\nPaint the shed.")


def test_the_fork_is_a_copy_that_is_gone_afterwards(world: RelayWorld) -> None:
    """An agent without a fork of its own goes on from a copy; the original is not touched."""
    add_writer(world, copy="beside")
    let_it_write(world, 'ls "$HOME/.demo-agent/writer"; echo "$2"')
    session = begin_talk(world)
    before = read_all(world)
    told = world.ask("narrate", session=session)
    *names, fork = str(told["text"]).split()
    native_id = world.session(session).legs[0].native_id
    assert fork != native_id
    assert set(names) == {f"{native_id}.jsonl", f"{fork}.jsonl"}
    assert read_all(world) == before
    assert list_runs(world) == []


def test_a_cancelled_document_leaves_nothing_behind(world: RelayWorld) -> None:
    """Whatever the agent started is ended, too; the next document can be asked for at once."""
    add_writer(world, copy="beside")
    let_it_write(world, '(trap "" TERM; sleep 600) & touch "$HOME/begun"; sleep 600')
    session = begin_talk(world)
    before, living = read_all(world), world.find_workers()
    asking, told = ask_meanwhile(world, session)
    with pytest.raises(WrongUseError, match="being written already"):
        world.ask("narrate", session=session)
    assert world.ask("narrate.cancel", session=session)["cancelled"] is True
    asking.join()
    assert (told["outcome"], told["message"]) == ("cancelled", "Handoff cancelled")
    assert world.find_workers() <= living
    assert read_all(world) == before
    assert list_runs(world) == []
    assert world.ask("narrate.cancel", session=session)["cancelled"] is False
    let_it_write(world, "echo again")
    assert world.ask("narrate", session=session)["text"] == "again"


def test_an_agent_that_does_not_answer_is_given_up(world: RelayWorld) -> None:
    """Some agents wait for hours in silence when they are limited."""
    add_writer(world, limit_s=0.5)
    let_it_write(world, "sleep 600")
    session = begin_talk(world)
    living = world.find_workers()
    assert world.ask("narrate", session=session)["message"] == "Handoff failed: no answer came within 0.5 s"
    assert world.find_workers() <= living


def test_an_agent_that_never_stops_talking_is_given_up(world: RelayWorld) -> None:
    """Its words fill no disk."""
    add_writer(world)
    let_it_write(world, "head -c 20000000 /dev/zero; sleep 600")
    session = begin_talk(world)
    assert world.ask("narrate", session=session)["message"] == "Handoff failed: it printed more than 16 MiB"


def test_what_the_agent_leaves_running_is_ended(world: RelayWorld) -> None:
    """A server it started keeps its streams open; neither that nor the server outlives the document."""
    add_writer(world)
    let_it_write(world, "sleep 600 & echo done")
    session = begin_talk(world)
    living = world.find_workers()
    assert world.ask("narrate", session=session)["text"] == "done"
    assert world.find_workers() <= living


def test_failures_are_told_in_one_line(world: RelayWorld) -> None:
    """The program's own last words say most."""
    add_writer(world)
    session = begin_talk(world)
    let_it_write(world, "echo half; echo 'no credit left' >&2; exit 3")
    assert world.ask("narrate", session=session)["message"] == "Handoff failed: no credit left"
    let_it_write(world, "kill -KILL $$")
    assert world.ask("narrate", session=session)["message"] == "Handoff failed: it ended with status 137"
    let_it_write(world, "echo ' '")
    assert world.ask("narrate", session=session)["outcome"] == "empty"


def test_nothing_secret_is_kept_and_nothing_is_in_ps(world: RelayWorld) -> None:
    """The request and the answer may hold what the user would not show to everybody."""
    world.environ |= {"OTHER_KEY": "other-agents-secret-0000", "WRITER_KEY": "own-secret-value-1111"}
    add_writer(world, keys="WRITER_KEY")
    let_it_write(world, f'tr "\\0" " " < /proc/$$/cmdline; env; echo token {TOKEN}')
    session = begin_talk(world)
    text = str(world.ask("narrate", session=session, focus="secret focus")["text"])
    assert "secret focus" not in text
    assert "WRITING=yes" in text
    assert "AGENT_RELAY_HOME" not in text
    assert "AGENT_RELAY_LEG=document" in text  # the user's hooks of ours would take it for an agent of theirs
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    with open(f"{folder}/narrative.json", encoding="utf-8") as file:
        kept = file.read()
    assert os.stat(f"{folder}/narrative.json").st_mode & 0o777 == 0o600
    for secret in (TOKEN, "own-secret-value-1111", "other-agents-secret-0000"):
        assert secret not in text + kept


def test_the_document_is_saved_beside_the_packets_for_those_who_want_that(world: RelayWorld) -> None:
    """A full disk, or a folder somebody took away, costs that file only."""
    with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
        file.write("[handoff]\nsave_to_disk = true\n")
    add_writer(world)
    let_it_write(world, "echo '## Goal'")
    session = begin_talk(world)
    assert world.ask("narrate", session=session)["outcome"] == "written"
    (saved,) = glob.glob(f"{world.project}/.agent-relay/sessions/{session}/resume/handoff-*.md")
    with open(saved, encoding="utf-8") as file:
        assert file.read() == "## Goal\n"
    world.ask("use", session=session, agent="understudy")
    assert world.wait_for(session, has_taken_over, "the understudy took over").done[0].sequence == 1


def test_there_is_nothing_to_hand_off_before_the_first_answer(world: RelayWorld) -> None:
    """No process is started for that."""
    add_writer(world)
    let_it_write(world, 'touch "$HOME/begun"')
    session = begin_talk(world, prompts=0)
    assert world.ask("narrate", session=session)["message"] == "Nothing to hand off (no messages yet)"
    assert not os.path.exists(f"{world.home}/begun")


def test_an_agent_without_a_headless_side_writes_none(world: RelayWorld) -> None:
    """Its session can still be handed over as ever."""
    session = begin(world)
    assert world.ask("narrate", session=session)["outcome"] == "unable"


def test_a_copy_a_killed_daemon_left_is_removed_by_the_next_one(world: RelayWorld) -> None:
    """The user's list of sessions does not fill with forks."""
    add_writer(world, copy="beside")
    let_it_write(world, 'touch "$HOME/begun"; sleep 600')
    session = begin_talk(world)
    before = read_all(world)
    living = world.find_workers()
    with world.connect() as connection:
        asking = threading.Thread(target=lambda: _ask_in_vain(connection, session))
        asking.start()
        wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the agent writes")
        world.kill_daemons()
        asking.join()
    wait_until(lambda: world.find_workers() <= living, "the agent ended with its daemon")
    assert read_all(world) != before
    world.start_daemon()
    let_it_write(world, "echo again")
    assert world.ask("narrate", session=session)["text"] == "again"
    assert read_all(world) == before


def test_nothing_outlives_a_daemon_that_was_killed(world: RelayWorld) -> None:
    """An agent nobody waits for would go on spending; its shells, and what ignores SIGTERM, end as well."""
    add_writer(world)
    let_it_write(
        world,
        """(trap "" TERM; sleep 601) &
setsid sh -c 'trap "" TERM; sleep 602' &
touch "$HOME/begun"; sleep 603""",
    )
    session = begin_talk(world)
    living = world.find_workers()
    with world.connect() as connection:
        asking = threading.Thread(target=lambda: _ask_in_vain(connection, session))
        asking.start()
        sleeps = ("sleep 601", "sleep 602", "sleep 603")
        wait_until(lambda: all(one in " ".join(world.processes().values()) for one in sleeps), "it works")
        world.kill_daemons()
        asking.join()
    wait_until(lambda: world.find_workers() <= living, "everything of it has ended")
    world.start_daemon()
    let_it_write(world, "echo again")
    assert world.ask("narrate", session=session)["text"] == "again"


def test_a_program_that_cannot_be_started_is_named(world: RelayWorld) -> None:
    """It was there when the session began."""
    add_writer(world)
    session = begin_talk(world)
    program = f"{world.folders.config}/adapters/writer/writer"
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/nowhere/sh\n")
    message = str(world.ask("narrate", session=session)["message"])
    assert message.startswith("Handoff failed: writer cannot be started:")
    assert list_runs(world) == []


def _ask_in_vain(connection: Connection, session: str) -> None:
    with pytest.raises(DaemonUnreachableError, match="went away"):
        connection.request("narrate", session=session)
