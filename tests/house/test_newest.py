"""What is told of the newest agents is what was played."""

import re

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from tests.house import tree
from tests.support.newest_table import SCENES


def test_every_scene_is_a_column_and_a_row_of_the_page() -> None:
    """A scene nobody is told of proves nothing to anybody."""
    files = ("tests/newest/scenes.py", "tests/newest/reset_scenes.py")
    played = [
        name
        for path in files
        for name in re.findall(r"^def test_(\w+)\(", tree.read_text(path), re.MULTILINE)
    ]
    assert played == list(SCENES)
    told = re.findall(
        r"^\| ([a-z ]+) \|", tree.read_text("docs/agents.md").partition("<!-- end")[2], re.MULTILINE
    )
    assert told == ["scene", *SCENES.values()]


def test_what_was_played_through_every_scene_counts_as_tried() -> None:
    """Else the page says that a version works, and `doctor` that it may not."""
    rows = re.findall(r"^\| ([a-z]+) \| ([0-9.]+) \|", tree.read_text("docs/agents.md"), re.MULTILINE)
    assert rows
    tried = {
        name: load_adapter(f"{find_builtin_folder()}/{name}").adapter.tested_versions for name, _ in rows
    }
    assert [row for row in rows if row[1] not in tried[row[0]]] == []
