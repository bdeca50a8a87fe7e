"""Two runners at the same lines are noticed; what a race does in the working tree is whole."""

import os
from pathlib import Path

from agent_relay.domain.values import replace
from agent_relay.race._workspace import RaceWorkspace, find_overlaps
from agent_relay.race.model import Overlap
from agent_relay.system.disk._undo_record import ChangeRecord, UndoStep, write_record
from agent_relay.system.disk.file_transaction import describe_file
from agent_relay.system.git.snapshot import Change, ChangeKind, LineSpan
from tests.support.races import begin, tell


def changed(*spans: LineSpan, blob: str = "ours") -> Change:
    return Change("a.py", ChangeKind.CHANGED, blob, spans)


ADDED, DELETED = (
    Change("a.py", ChangeKind.ADDED, "x", (LineSpan(1, 0),)),
    Change("a.py", ChangeKind.DELETED, "0", (LineSpan(1, 9),)),
)
BINARY = Change("a.py", ChangeKind.CHANGED, "b")


def test_what_two_runners_do_to_one_file_meets_or_does_not() -> None:
    """A warning that cries wolf is not read; one that misses lets two runners undo each other."""
    rows = [
        (changed(LineSpan(3, 5)), changed(LineSpan(5, 9)), "both change line 5"),
        (changed(LineSpan(3, 7)), changed(LineSpan(1, 9)), "both change lines 3-7"),
        (changed(LineSpan(3, 4), LineSpan(8, 8)), changed(LineSpan(1, 9)), "both change lines 3-4 and 8"),
        (changed(LineSpan(3, 4)), changed(LineSpan(5, 6)), ""),
        (changed(LineSpan(9, 9)), changed(LineSpan(1, 2), LineSpan(4, 4)), ""),
        (changed(LineSpan(6, 5)), changed(LineSpan(6, 5)), "both change what follows line 5"),
        (changed(LineSpan(6, 5)), changed(LineSpan(4, 9)), "both change what follows line 5"),
        (changed(LineSpan(4, 5)), changed(LineSpan(6, 5)), "both change what follows line 5"),
        (changed(LineSpan(6, 5)), changed(LineSpan(8, 9)), ""),
        (
            changed(LineSpan(6, 5), LineSpan(7, 7)),
            changed(LineSpan(5, 5), LineSpan(7, 8)),
            "both change line 7",
        ),
        (
            changed(LineSpan(1, 1), blob="x"),
            changed(LineSpan(1, 1), blob="x"),
            "both change line 1, to the same contents",
        ),
        (ADDED, ADDED, "both add it, to the same contents"),
        (ADDED, Change("a.py", ChangeKind.ADDED, "y"), "both add it"),
        (changed(LineSpan(3, 3)), DELETED, "one deletes it, the other changes it"),
        (DELETED, DELETED, ""),
        (BINARY, changed(LineSpan(3, 3)), "both change it as a whole"),
        (BINARY, BINARY, "both change it as a whole, to the same contents"),
    ]
    told = []
    for ours, theirs, _ in rows:
        other = replace(theirs, blob="theirs") if theirs.blob == "ours" else theirs
        told.append("".join(overlap.what for overlap in find_overlaps({1: [ours], 2: [other]})))
    assert told == [what for *_, what in rows]


def test_every_pair_is_looked_at_and_other_files_do_not_meet() -> None:
    """Three runners are three pairs."""
    other = Change("b.py", ChangeKind.ADDED, "x")
    found = find_overlaps({3: [ADDED], 1: [other, ADDED], 2: [other]})
    assert found == [
        Overlap(1, 2, "b.py", "both add it, to the same contents"),
        Overlap(1, 3, "a.py", "both add it, to the same contents"),
    ]


def test_cleaning_puts_back_what_a_killed_application_left(tmp_path: Path) -> None:
    """With the race goes the record that says how."""
    root, folder = tmp_path / "root", tmp_path / "race"
    root.mkdir()
    folder.mkdir()
    (folder / "journal.jsonl").write_text("")
    (root / "a.txt").write_text("old\n")
    step = UndoStep("a.txt", describe_file(str(root), "a.txt"), "", ".a.new", ".a.old")
    os.rename(root / "a.txt", root / ".a.old")
    write_record(str(folder / "applying.json"), ChangeRecord(str(root), (step,), (), ()))
    assert RaceWorkspace(str(folder), str(root), "R").remove(tell(*begin("ann", "bob"))) == []
    assert ((root / "a.txt").read_text(), os.listdir(root)) == ("old\n", ["a.txt"])
    assert os.listdir(folder) == ["journal.jsonl"]
