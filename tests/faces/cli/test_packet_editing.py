"""What a killed `packet edit` leaves is swept by the next one, unless somebody has it or wrote in it."""

import os
import signal
from pathlib import Path

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.session.packet import find_editor
from agent_relay.store.edit_buffer import open_edit_buffer, sweep_edit_buffers
from agent_relay.system.processes import born, wait_for_end
from tests.faces.cli.test_packet_carry import bring, editor
from tests.faces.cli_run import World
from tests.support import preloaded
from tests.support.relay_world import wait_until

LIMIT = 1 << 20


@pytest.fixture
def world(world: World) -> World:
    """A user with a packet that waits."""
    bring(world)
    return world


def list_asides(world: World) -> list[Path]:
    return sorted(Path(world.cwd).glob(".agent-relay/sessions/*/edit-*"))


def kill_an_edit(world: World, script: str) -> int:
    """The pid of an editor whose `packet edit` was killed after `script`; it lives."""
    note = Path(world.home) / "editing"
    variables = editor(f"{script}; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    command = preloaded.Command(["packet", "edit"], world.environ() | variables, world.cwd)
    with open(os.devnull, "r+b") as nothing:
        running = command.start([nothing.fileno()] * 3)
    wait_until(lambda: note.exists() and bool(note.read_text()), "the editor is open")
    running.kill()
    running.wait()
    return int(note.read_text())


def end(pid: int) -> None:
    begun = born(pid)
    assert begun is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_for_end([(pid, begun)], limit_s=60)


@pytest.mark.size("test")
def test_a_killed_edits_folder_is_swept_once_its_editor_is_gone(world: World) -> None:
    """Its file must not go away under an editor that lives on; nor must folders pile up for ever."""
    pid = kill_an_edit(world, "pass")
    try:
        (left,) = list_asides(world)
        done = world.run_with(editor("pass"), "packet", "edit")
        assert (done.status, done.out) == (0, "Nothing was changed.\n")
        assert list_asides(world) == [left]
    finally:
        end(pid)
    assert world.run_with(editor("pass"), "packet", "edit").out == "Nothing was changed.\n"
    assert list_asides(world) == []


@pytest.mark.size("every")
def test_what_somebody_wrote_is_kept_and_named(world: World) -> None:
    """It was saved in the editor: only its user may throw it away."""
    pid = kill_an_edit(world, "open(path, 'w').write('mine')")
    end(pid)
    (left,) = list_asides(world)
    done = world.run_with(editor("pass"), "packet", "edit")
    assert done.out == f"Nothing was changed.\nAn earlier edit that reached no packet is kept in {left}\n"
    assert sorted(path.name for path in left.iterdir()) == [".before", "0001-understudy.md"]
    assert (left / "0001-understudy.md").read_text() == "mine"
    assert "edit" not in world.run_with(editor("pass"), "packet", "edit", "--json").out.replace("edited", "")


@pytest.mark.size("test")
def test_an_edit_that_was_refused_is_not_swept(world: World) -> None:
    """The sentence said that it is kept there."""
    refused = world.run_with(editor("open(path, 'w').write('{')"), "packet", "edit", "--document")
    assert refused.status != 0
    (left,) = list_asides(world)
    assert str(left) in refused.err
    world.run_with(editor("pass"), "packet", "edit")
    assert list_asides(world) == [left]


def test_only_what_we_made_and_nobody_touched_is_swept(tmp_path: Path) -> None:
    """A name is no proof: links, files, other people's folders and editors' own files stay."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "0001-a.md").write_text("theirs")
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "edit-linked00").symlink_to(elsewhere)
    (folder / "edit-file0000").write_text("x")
    (folder / "edit-notes").mkdir()
    (folder / "edit-empty000").mkdir()
    older = folder / "edit-older000"
    older.mkdir()
    (older / "0001-a.md").write_text("made by an older version")
    with open_edit_buffer(str(folder), "0001-a.md", b"text") as aside:
        used = Path(aside.path).parent
        (used / ".0001-a.md.swp").write_text("unsaved words")
    with open_edit_buffer(str(folder), "0001-a.md", b"text") as aside:
        untouched = Path(aside.path).parent
        assert sweep_edit_buffers(str(folder), limit_bytes=LIMIT) == [str(older), str(used)]
        assert untouched.exists()
    assert set(sweep_edit_buffers(str(folder), limit_bytes=LIMIT)) == {str(older), str(used)}
    assert {path.name for path in folder.iterdir()} == {
        "edit-linked00",
        "edit-file0000",
        "edit-notes",
        "edit-older000",
        used.name,
    }
    assert (elsewhere / "0001-a.md").read_text() == "theirs"
    assert sweep_edit_buffers(str(tmp_path / "nowhere"), limit_bytes=LIMIT) == []


def test_the_users_own_editor_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """$VISUAL is for terminals that can show a whole screen, and comes first everywhere."""
    monkeypatch.setenv("EDITOR", "nano")
    monkeypatch.setenv("VISUAL", "code --wait")
    assert find_editor() == ["code", "--wait"]
    monkeypatch.setenv("VISUAL", "")
    assert find_editor() == ["nano"]


def test_without_an_editor_nothing_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who has none is told so, before anything is changed."""
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WrongUseError, match="no editor is set"):
        find_editor()
