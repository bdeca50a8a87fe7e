"""Handoff documents as the daemon has them written: in a fork, bounded, cancellable, without secrets."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.errors import DaemonUnreachableError, WrongUseError
from tests.support.at_work import WorkingWorld
from tests.support.relay_world import wait_until
from tests.support.writer import add_writer, begin_talk, let_it_write

pytestmark = pytest.mark.size("every")

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def read_all(world: WorkingWorld) -> dict[str, bytes]:
    """Every transcript of the writer."""
    return {str(path): path.read_bytes() for path in Path(world.home, ".demo-agent", "writer").iterdir()}


def list_runs(world: WorkingWorld) -> list[str]:
    return os.listdir(f"{world.folders.runtime}/narratives")


def begin_writer(world: WorkingWorld, script: str, *, prompts: int = 1, **writer: object) -> str:
    """A session under the writer, which writes by `script` once it is asked."""
    add_writer(world, **writer)  # type: ignore[arg-type]  # as they are there
    let_it_write(world, script)
    return begin_talk(world, prompts=prompts)


def narrate(world: WorkingWorld, session: str, **words: object) -> dict[str, object]:
    return world.ask("narrate", session=session, **words)


@contextlib.contextmanager
def asking(world: WorkingWorld, session: str) -> Iterator[dict[str, object]]:
    """A face waits for a document meanwhile; what it is told is there at the end."""
    told: dict[str, object] = {}

    def ask() -> None:
        try:
            told.update(narrate(world, session))
        except DaemonUnreachableError as error:
            told["unreachable"] = error.sentence

    face = threading.Thread(target=ask)
    face.start()
    wait_until(lambda: os.path.exists(f"{world.home}/begun"), "the agent writes")
    yield told
    face.join()


@pytest.mark.size("test")
def test_the_next_packet_takes_the_document_along(world: WorkingWorld) -> None:
    """What the agent wrote while it could is in the successor's hands, when and by whom is told.

    It is saved beside the packets as well for those who want that.
    """
    world.configure("[handoff]\nsave_to_disk = true\n")
    session = begin_writer(world, 'cat > "$HOME/asked"; echo "## Goal"; echo "Paint the shed."')
    told = narrate(world, session, focus="the door")
    assert (told["outcome"], told["text"]) == ("written", "## Goal\nPaint the shed.")
    assert "say most about it: the door" in Path(world.home, "asked").read_text("utf-8")
    (saved,) = world.path(session, "resume").glob("handoff-*.md")
    assert saved.read_text("utf-8") == "## Goal\nPaint the shed.\n"
    world.ask("use", session=session, agent="understudy")
    assert world.wait_handed_over(session).done[0].sequence == 1
    narrative = str(world.read_packet(session)["narrative"])
    assert narrative.startswith("(written 20")
    assert narrative.endswith(" UTC)\n\n## Goal\nPaint the shed.")


def test_the_fork_is_a_copy_that_is_gone_afterwards(world: WorkingWorld) -> None:
    """An agent without a fork of its own goes on from a copy; the original is not touched."""
    session = begin_writer(world, 'ls "$HOME/.demo-agent/writer"; echo "$2"', copy="beside")
    before = read_all(world)
    *names, fork = str(narrate(world, session)["text"]).split()
    native_id = world.session(session).legs[0].native_id
    assert fork != native_id
    assert set(names) == {f"{native_id}.jsonl", f"{fork}.jsonl"}
    assert read_all(world) == before
    assert list_runs(world) == []


def test_a_cancelled_document_leaves_nothing_behind(world: WorkingWorld) -> None:
    """Whatever the agent started is ended, too; the next document can be asked for at once."""
    script = '(trap "" TERM; sleep 600) & touch "$HOME/begun"; sleep 600'
    session = begin_writer(world, script, copy="beside")
    before, living = read_all(world), world.find_workers()
    with asking(world, session) as told:
        with pytest.raises(WrongUseError, match="being written already"):
            narrate(world, session)
        assert world.ask("narrate.cancel", session=session)["cancelled"] is True
    assert (told["outcome"], told["message"]) == ("cancelled", "Handoff cancelled")
    assert world.find_workers() <= living
    assert read_all(world) == before
    assert list_runs(world) == []
    assert world.ask("narrate.cancel", session=session)["cancelled"] is False
    let_it_write(world, "echo again")
    assert narrate(world, session)["text"] == "again"


def test_an_agent_that_does_not_answer_is_given_up(world: WorkingWorld) -> None:
    """Some agents wait for hours in silence when they are limited."""
    session = begin_writer(world, "sleep 600", limit_s=0.5)
    living = world.find_workers()
    assert narrate(world, session)["message"] == "Handoff failed: no answer came within 0.5 s"
    assert world.find_workers() <= living


def test_what_the_agent_leaves_running_is_ended(world: WorkingWorld) -> None:
    """A server it started keeps its streams open; neither that nor the server outlives the document."""
    session = begin_writer(world, "sleep 600 & echo done")
    living = world.find_workers()
    assert narrate(world, session)["text"] == "done"
    assert world.find_workers() <= living


def test_failures_are_told_in_one_line(world: WorkingWorld) -> None:
    """The program's own last words say most; one that never stops talking fills no disk."""
    session = begin_writer(world, "")
    for script, message in (
        ("echo half; echo 'no credit left' >&2; exit 3", "no credit left"),
        ("kill -KILL $$", "it ended with status 137"),
        ("head -c 20000000 /dev/zero; sleep 600", "it printed more than 16 MiB"),
    ):
        let_it_write(world, script)
        assert narrate(world, session)["message"] == f"Handoff failed: {message}"
    let_it_write(world, "echo ' '")
    assert narrate(world, session)["outcome"] == "empty"
    # It was there when the session began.
    Path(world.folders.config, "adapters", "writer", "writer").write_text("#!/nowhere/sh\n", "utf-8")
    message = str(narrate(world, session)["message"])
    assert message.startswith("Handoff failed: writer cannot be started:")
    assert list_runs(world) == []


def test_nothing_secret_is_kept_and_nothing_is_in_ps(world: WorkingWorld) -> None:
    """The request and the answer may hold what the user would not show to everybody."""
    world.environ |= {"OTHER_KEY": "other-agents-secret-0000", "WRITER_KEY": "own-secret-value-1111"}
    script = f'tr "\\0" " " < /proc/$$/cmdline; env; echo token {TOKEN}'
    session = begin_writer(world, script, keys="WRITER_KEY")
    text = str(narrate(world, session, focus="secret focus")["text"])
    assert "secret focus" not in text
    assert "WRITING=yes" in text
    assert "AGENT_RELAY_HOME" not in text
    assert "AGENT_RELAY_LEG=document" in text  # the user's hooks of ours would take it for an agent of theirs
    kept = world.path(session, "narrative.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    for secret in (TOKEN, "own-secret-value-1111", "other-agents-secret-0000"):
        assert secret not in text + kept.read_text("utf-8")


def test_who_has_nothing_to_hand_off_or_no_headless_side_writes_none(world: WorkingWorld) -> None:
    """No process is started before the first answer; the session can still be handed over as ever."""
    session = begin_writer(world, 'touch "$HOME/begun"', prompts=0)
    assert narrate(world, session)["message"] == "Nothing to hand off (no messages yet)"
    assert not os.path.exists(f"{world.home}/begun")
    assert narrate(world, world.begin(new=True))["outcome"] == "unable"


def test_nothing_outlives_a_daemon_that_was_killed(world: WorkingWorld) -> None:
    """An agent nobody waits for would go on spending; its shells, and what ignores SIGTERM, end as well.

    The copy it left is removed by the next daemon: the user's list of sessions does not fill with forks.
    """
    session = begin_writer(
        world,
        """(trap "" TERM; sleep 601) &
setsid sh -c 'trap "" TERM; sleep 602' &
touch "$HOME/begun"; sleep 603""",
        copy="beside",
    )
    before, living = read_all(world), world.find_workers()
    sleeps = ("sleep 601", "sleep 602", "sleep 603")
    with asking(world, session) as told:
        wait_until(lambda: all(one in " ".join(world.processes().values()) for one in sleeps), "it works")
        world.kill_daemons()
    assert "went away" in str(told["unreachable"])
    wait_until(lambda: world.find_workers() <= living, "everything of it has ended")
    assert read_all(world) != before
    world.start_daemon()
    let_it_write(world, "echo again")
    assert narrate(world, session)["text"] == "again"
    assert read_all(world) == before
