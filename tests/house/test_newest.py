"""What is told of the newest agents is what was played."""

import re

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from tests.house import tree
from tests.support.newest_table import SCENES, Result, read_results, render_table, shorten, write_page

RESULTS = """<testsuites><testsuite>
<testcase name="test_limit[claude]" />
<testcase name="test_limit[codex]"><failure
message="real_terminal.WaitedError: waited 180 s for the limit; the screen:&#10;secret" /></testcase>
<testcase name="test_near_limit[claude]"><skipped message="it says nothing before its limit" /></testcase>
<testcase name="test_retry[codex]"><error message="OSError: gone" /></testcase>
<testcase name="something else" />
</testsuite></testsuites>"""


def test_results_are_read_by_scene_and_agent() -> None:
    """A scene that could not even begin is as wrong as one that ended wrong."""
    assert read_results(RESULTS) == {
        ("limit", "claude"): Result(is_right=True),
        ("limit", "codex"): Result(is_right=False, why="waited 180 s for the limit"),
        ("near_limit", "claude"): Result(is_right=True, why="it says nothing before its limit"),
        ("retry", "codex"): Result(is_right=False, why="gone"),
    }


def test_what_went_wrong_is_one_line_that_shows_no_screen_and_no_path() -> None:
    """The page is for everybody; whose machine it was made on is nobody's business."""
    said = "AssertionError: /var/tmp/ar-real-x/project/calc.py is gone; the screen:\nwords"
    assert shorten(said) == "… is gone"
    assert shorten("x" * 500) == "x" * 199 + "…"
    assert shorten("") == ""


def test_the_table_has_a_row_for_each_agent_and_tells_why_something_is_not_right() -> None:
    """A hole in the table must not look like a success."""
    table = render_table({"claude": "2.1.331", "codex": "0.169.0"}, read_results(RESULTS))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n\n")[0].splitlines()
    ]
    assert rows[0] == ["agent", "version", *SCENES.values()]
    assert rows[2][:6] == ["claude", "2.1.331", "ok", "not played", "none (1)", "not played"]
    assert rows[3][:7] == [
        "codex",
        "0.169.0",
        "wrong (2)",
        "not played",
        "not played",
        "not played",
        "wrong (3)",
    ]
    assert table.split("\n\n")[1] == (
        "1. claude, near limit: it says nothing before its limit\n"
        "2. codex, limit: waited 180 s for the limit\n"
        "3. codex, retry: gone\n"
    )


def test_the_table_is_put_between_its_marks(tmp_path: object) -> None:
    """What people wrote around it stays."""
    path = f"{tmp_path}/agents.md"
    with open(path, "w", encoding="utf-8") as file:
        file.write(tree.read_text("docs/agents.md"))
    for day in ("2026-11-24", "2026-11-25"):
        write_page(path, "| agent |\n", day=day)
    with open(path, encoding="utf-8") as file:
        page = file.read()
    assert page.count("| agent |\n") == 1
    assert "Played on 2026-11-25 with" in page
    assert "2026-11-24" not in page
    assert page.partition("<!-- table")[0] == tree.read_text("docs/agents.md").partition("<!-- table")[0]
    assert page.partition("<!-- end")[2] == tree.read_text("docs/agents.md").partition("<!-- end")[2]


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
