"""Several files change as one step: whatever fails or is killed in the middle, all are new or none is."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk._undo_record import ChangeRecord, UndoStep, write_record
from agent_relay.system.disk.file_transaction import (
    FileEdit,
    UnfinishedChangeError,
    change_files,
    describe_file,
    undo_changes,
)
from tests.support import doomed_change
from tests.support.race_places import read_files
from tests.support.relay_world import CHECKOUT

_FEWEST, _MOST = 20, 1000
"""Of the writes that the example takes."""


class Place:
    """A folder of files, what is to become of it, and the record of the change."""

    def __init__(self, folder: Path) -> None:
        self.root, self.sources, self.record = folder / "root", folder / "new", str(folder / "record.json")
        for made in (self.root, self.sources):
            made.mkdir()

    def describe(self, path: str) -> str:
        """What stands there."""
        return describe_file(str(self.root), path)

    def change(self, path: str, text: str | None, *, executable: bool | None = None) -> FileEdit:
        """The change that gives a file this text, or removes it, decided now."""
        source = ""
        if text is not None:
            source = str(self.sources / path.replace("/", "+"))
            Path(source).write_text(text)
        return FileEdit(path, source, self.describe(path), executable)

    def make(self, *changes: FileEdit) -> None:
        """Change them."""
        change_files(str(self.root), changes, record=self.record)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty folder."""
    return Place(tmp_path)


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """`folder` is a small file system of its own."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def look(root: Path) -> dict[str, tuple[str, bytes]]:
    """Every file, and every folder with its mode."""
    folders = {
        os.path.relpath(folder, root): (oct(os.lstat(folder).st_mode), b"folder")
        for folder, _, _ in os.walk(root)
    }
    return {**read_files(str(root)), **folders}


def find_hidden(root: Path) -> list[str]:
    """What a change may have left beside the files."""
    return [path for path in read_files(str(root)) if ".agent-relay" in path]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[str, bytes]]]:
    """The files of the example before it is changed, and after."""
    found = {}
    for name, nth in (("old", 0), ("new", _MOST)):
        folder = tmp_path_factory.mktemp(name)
        if nth:
            doomed_change.try_once(str(folder / "made"), nth, "fail")
        else:
            doomed_change.fill(str(folder / "made" / "root"))
        found[name] = look(folder / "made" / "root")
    return found


@pytest.mark.size("test")
@pytest.mark.parametrize("how", ["kill", "fail"])
def test_whichever_write_is_the_last_one_the_files_are_all_old_or_all_new(
    tmp_path: Path, how: str, examples: dict[str, dict[str, tuple[str, bytes]]]
) -> None:
    """A killed or refused change took files away and put nothing in their place."""
    words = [sys.executable, "-m", "tests.support.doomed_change", tmp_path, how]
    subprocess.run(words, cwd=CHECKOUT, check=True)
    outcomes = []
    for nth in range(1, len(os.listdir(tmp_path)) + 1):
        folder = tmp_path / str(nth)
        root, status = folder / "root", int((folder / "status").read_text())
        if how == "kill" and status != doomed_change.NOT_REACHED:
            assert status == -signal.SIGKILL
            assert (root / "changed.txt").read_text() in {"old changed.txt\n", "new\n"}
            assert os.readlink(root / "link") in {"changed.txt", "run.sh"}
        elif status == 1:
            assert look(root) == examples["old"], nth
        undo_changes(str(folder / "record.json"))
        assert find_hidden(root) == []
        assert not (folder / "record.json").exists()
        found = look(root)
        outcomes.append(next(name for name, example in examples.items() if example == found))
    # A write that is refused may be done in another way; after a killed one nothing is done.
    assert how == "fail" or outcomes == sorted(outcomes, reverse=True)
    assert (outcomes.count("old") > _FEWEST, outcomes[-1]) == (True, "new")


def test_what_somebody_wrote_after_a_crash_is_not_undone(place: Place) -> None:
    """They may have seen the new file and gone on from it; what it was before is kept for them, too."""
    (place.root / "a.txt").write_text("old\n")
    (place.root / "b.txt").write_text("old\n")
    steps = (
        UndoStep("a.txt", place.describe("a.txt"), "file 0", ".a.new", ".a.old"),
        UndoStep("b.txt", place.describe("b.txt"), "file 0", ".b.new", ".b.old"),
    )
    os.rename(place.root / "a.txt", place.root / ".a.old")
    os.rename(place.root / "b.txt", place.root / ".b.old")
    (place.root / "a.txt").write_text("new, and mine\n")
    write_record(place.record, ChangeRecord(str(place.root), steps, (), ()))
    with pytest.raises(UnfinishedChangeError, match=r"changed meanwhile, .* is in: \.a\.old"):
        undo_changes(place.record)
    found = {path: text for path, (_, text) in read_files(str(place.root)).items()}
    assert found == {"a.txt": b"new, and mine\n", ".a.old": b"old\n", "b.txt": b"old\n"}
    undo_changes(place.record)


def test_nothing_is_forgotten_of_a_folder_that_is_not_mounted_now(place: Place) -> None:
    """What its files were is still on that disk, under names that only the record knows."""
    (place.root / "a.txt").write_text("old\n")
    step = UndoStep("a.txt", place.describe("a.txt"), "", ".a.new", ".a.old")
    os.rename(place.root / "a.txt", place.root / ".a.old")
    write_record(place.record, ChangeRecord(str(place.root), (step,), (), ()))
    os.rename(place.root, place.root.parent / "away")
    undo_changes(place.record)
    os.rename(place.root.parent / "away", place.root)
    undo_changes(place.record)
    assert read_files(str(place.root)) == {"a.txt": ("0o644", b"old\n")}


@pytest.mark.parametrize("does", ["saved", "saved in place", "removed", "linked", "made", "folder linked"])
def test_a_save_after_the_change_was_decided_is_refused_and_nothing_is_written(
    place: Place, does: str
) -> None:
    """Whoever saves a file in that second would never see it again."""
    (place.root / "folder").mkdir()
    (place.root / "folder" / "a.txt").write_text("old\n")
    (place.root / "first.txt").write_text("old\n")
    changes = [
        place.change("first.txt", "new\n"),
        place.change("folder/a.txt", "new\n"),
        place.change("folder/b.txt", "new\n"),
    ]
    match does:
        case "saved":
            (place.root / "folder" / "mine").write_text("mine\n")
            os.rename(place.root / "folder" / "mine", place.root / "folder" / "a.txt")
        case "saved in place":
            (place.root / "folder" / "a.txt").write_text("mine\n")
        case "removed":
            (place.root / "folder" / "a.txt").unlink()
        case "linked":
            (place.root / "folder" / "a.txt").unlink()
            (place.root / "folder" / "a.txt").symlink_to("../first.txt")
        case "made":
            (place.root / "folder" / "b.txt").write_text("mine\n")
        case _:
            os.rename(place.root / "folder", place.root / "elsewhere")
            (place.root / "folder").symlink_to("elsewhere")
    before = look(place.root)
    with pytest.raises(RelayError, match=r"folder.* was changed just now"):
        place.make(*changes)
    assert look(place.root) == before
    assert not os.path.exists(place.record)


def test_a_folder_in_the_way_that_holds_more_than_is_removed_stays(place: Place) -> None:
    """It was removed with all that was in it, files that nobody had looked at included."""
    (place.root / "sub").mkdir()
    (place.root / "sub" / "known.txt").write_text("old\n")
    changes = [place.change("sub/known.txt", None), place.change("sub", "a file\n")]
    (place.root / "sub" / "just saved.txt").write_text("mine\n")
    before = look(place.root)
    with pytest.raises(RelayError, match="Directory not empty"):
        place.make(*changes)
    assert look(place.root) == before


def test_files_keep_their_modes_but_for_what_the_change_says(place: Place) -> None:
    """A key that only its owner may read came back readable for all."""
    modes = {"private.txt": 0o600, "group.txt": 0o664, "run": 0o750, "stop": 0o755, "begin": 0o640}
    for name, mode in modes.items():
        (place.root / name).write_text("old\n")
        (place.root / name).chmod(mode)
    gives = {"stop": False, "begin": True}
    place.make(*(place.change(name, "new\n", executable=gives.get(name)) for name in modes))
    found = {name: os.lstat(place.root / name).st_mode & 0o777 for name in modes}
    assert found == {"private.txt": 0o600, "group.txt": 0o664, "run": 0o750, "stop": 0o644, "begin": 0o750}


@pytest.mark.size("test")
def test_files_on_several_file_systems_change_as_one(place: Place) -> None:
    """A cache or a volume mounted in the tree: a rename from elsewhere is not possible into it."""
    (place.root / "top.txt").write_text("old\n")
    with mounted(place.root / "volume"):
        for name in ("changed.txt", "removed.txt"):
            (place.root / "volume" / name).write_text("old\n")
        place.make(
            place.change("top.txt", "new\n"),
            place.change("volume/removed.txt", None),
            place.change("volume/changed.txt", "new\n"),
            place.change("volume/deep/er/added.txt", "new\n"),
        )
        assert {path: text for path, (_, text) in read_files(str(place.root)).items()} == {
            "top.txt": b"new\n",
            "volume/changed.txt": b"new\n",
            "volume/deep/er/added.txt": b"new\n",
        }


@pytest.mark.size("test")
def test_a_mount_in_the_way_of_a_file_stays_with_all_that_is_in_it(place: Place) -> None:
    """It cannot be removed, which is known only when all that was in it is gone."""
    (place.root / "top.txt").write_text("old\n")
    with mounted(place.root / "volume"):
        (place.root / "volume" / "in.txt").write_text("old\n")
        before = look(place.root)
        with pytest.raises(RelayError, match="cannot write"):
            place.make(
                place.change("top.txt", "new\n"),
                place.change("volume/in.txt", None),
                place.change("volume", "a file\n"),
            )
        assert look(place.root) == before


@pytest.mark.size("test")
def test_a_folder_that_may_not_be_written_to_changes_nothing_anywhere(place: Place) -> None:
    """The others were changed by the time that one refused."""
    (place.root / "top.txt").write_text("old\n")
    (place.root / "gone.txt").write_text("old\n")
    with mounted(place.root / "volume"):
        (place.root / "volume" / "z.txt").write_text("old\n")
        subprocess.run(["mount", "-o", "remount,ro", place.root / "volume"], check=True)
        before = look(place.root)
        for removed in (place.change("volume/z.txt", "new\n"), place.change("volume/z.txt", None)):
            with pytest.raises(RelayError, match="Read-only file system"):
                place.make(place.change("top.txt", "new\n"), place.change("gone.txt", None), removed)
            assert look(place.root) == before
            assert not os.path.exists(place.record)


@pytest.mark.size("test")
def test_a_disk_that_is_full_in_the_middle_changes_nothing(place: Place) -> None:
    """The first files fit and the last one does not."""
    with mounted(place.root / "volume"):
        (place.root / "volume" / "a.txt").write_text("old\n")
        (place.root / "volume" / "z.txt").write_text("old\n")
        before = look(place.root)
        changes = [place.change("volume/a.txt", "new\n"), place.change("volume/z.txt", "new\n" * 100_000)]
        with pytest.raises(RelayError, match="No space left on device") as refused:
            place.make(*changes)
        assert refused.value.hint == "Free some space on that disk."
        assert look(place.root) == before


_STEP = {"path": "a", "before": "", "after": "x", "staged": "a.new", "old": "a.old"}
_SPOILT: list[dict[str, object]] = [
    {"root": 5},
    {"root": "/nowhere\0"},
    {"steps": [{**_STEP, "path": 1}]},
    {"steps": [{**_STEP, "old": "a\0b"}]},
    {"steps": [{**_STEP, "staged": "\ud800"}]},
    {"folders": [[]]},
    {"emptied": [["x", []]]},
    {"is_done": 1},
]


@pytest.mark.parametrize("spoilt", [None, *_SPOILT])
def test_a_spoilt_record_is_named_and_changes_nothing(place: Place, spoilt: dict[str, object] | None) -> None:
    """It raised what nobody expects of a file, and a daemon that met it ended, each time it was started."""
    whole = {"root": str(place.root), "steps": [], "folders": [], "emptied": [], "is_done": False}
    text = "[" * 200_000 if spoilt is None else json.dumps(whole | spoilt)
    Path(place.record).write_text(text)
    with pytest.raises(UntrustedDataError, match="is not a record of an interrupted change"):
        undo_changes(place.record)
    assert Path(place.record).read_text() == text
