"""How a tool changed a file, as far as its agent's record tells."""

from agent_relay.domain.documents.adapter import StreamRule
from agent_relay.session.turns.output import LONGEST_DIFF, read_change

HUNKS = StreamRule(means="edit", hunks="patch", before="old", after="new")


def test_hunks_become_a_unified_diff() -> None:
    """One agent tells its changes as lists; what is odd in them is passed over."""
    patch = [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" a", "-b", "+c"]},
        {"lines": []},
        "odd",
        {"lines": "odd"},
    ]
    diff = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -0,0 +0,0 @@"
    assert read_change(HUNKS, {"patch": patch}) == diff
    assert read_change(HUNKS, {"patch": "odd"}) == ""


def test_two_texts_are_compared() -> None:
    """Another tells what it replaced; where that stands in the file is not known."""
    changed = {"patch": [], "old": "keep\n--x\n", "new": "keep\n++y\n"}
    assert read_change(HUNKS, changed) == " keep\n---x\n+++y"
    assert read_change(HUNKS, {"old": None, "new": "made\n"}) == "+made"
    assert read_change(HUNKS, {"old": "kept"}) == ""
    assert read_change(HUNKS, {"old": "", "new": "line\n" * 401}) == ""


def test_a_diff_is_told_as_it_is_and_cut_at_a_lines_end() -> None:
    """The third has the diff; git has all of a long one."""
    told = StreamRule(means="edit", text="diff")
    assert read_change(told, {"diff": "@@ -1 +1 @@\n-a\n+b\n"}) == "@@ -1 +1 @@\n-a\n+b\n"
    long = read_change(HUNKS, {"patch": [{"lines": ["+" + "x" * 98] * 1000}]})
    assert LONGEST_DIFF - 100 < len(long) <= LONGEST_DIFF
    assert long.endswith("x\n")
    assert read_change(told, {}) == ""
