"""What a race does in the user's working tree is whole, whatever interrupted it before."""

import os
from pathlib import Path

from agent_relay.race._workspace import RaceWorkspace
from agent_relay.system.disk._undo_record import ChangeRecord, UndoStep, write_record
from agent_relay.system.disk.file_transaction import describe_file
from tests.support.races import begin, tell


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
