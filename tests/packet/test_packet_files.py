"""The files of the work: the agent's changes merged with what git sees."""

from collections.abc import Iterable

from agent_relay.domain.documents.packet import TouchedFile
from agent_relay.domain.facts import Facts, FileChange
from agent_relay.domain.values import Tree, TreeFile
from agent_relay.packet._merge import Places, merge_files

_PLACES = Places(root="/r", cwd="/r/sub", prefix="sub")


def _change(path: str, action: str, **fields: object) -> FileChange:
    return FileChange(path, action, 1, **fields)  # type: ignore[arg-type]  # the tests' own shorthand


def _merge(
    changes: Iterable[FileChange], *files: TreeFile, before: Iterable[TouchedFile] = ()
) -> list[tuple[object, ...]]:
    tree = Tree(root="/r", is_git=True, files=files)
    facts = Facts(agent="a", cwd="/r/sub", files=tuple(changes))
    merged = merge_files(facts, tree, before, places=_PLACES, agent="a")
    return [(file.path, file.status, file.added, file.removed) for file in merged]


def test_paths_are_relative_to_the_root() -> None:
    """The same file must not be listed twice because one agent says it in full."""
    rows = {
        "/r/a.py": "a.py",
        "a.py": "sub/a.py",
        "../a.py": "a.py",
        "./x/../a.py": "sub/a.py",
        "/elsewhere/a.py": "/elsewhere/a.py",
        "/r": "/r",
        "/root/a.py": "/root/a.py",
        "/r/\udcff.py": "\\xff.py",
    }
    assert {path: _PLACES.shorten(path) for path in rows} == rows


def test_a_symlinked_folder_is_understood() -> None:
    """The agent was started through a link: its paths do not begin with git's root."""
    places = Places(root="/real/r", cwd="/link/sub", prefix="sub")
    assert places.shorten("/link/sub/a.py") == "sub/a.py"
    assert Places(root="/real/r", cwd="/link", prefix=".").shorten("/link/a.py") == "a.py"


def test_edits_of_one_file_are_not_summed() -> None:
    """Two edits may undo each other: lines are counted by git or not at all; a file made stays made."""
    changes = [
        _change("/r/a", "created", added=5, removed=0),
        _change("/r/a", "modified", added=1, removed=2),
        _change("/r/b", "read"),
        _change("/r/a", "read"),
    ]
    assert _merge(changes) == [("a", "created", None, None), ("b", "read", None, None)]


def test_a_file_made_and_deleted_again_is_gone() -> None:
    """Scratch files are no part of the work."""
    assert _merge([_change("/r/a", "created"), _change("/r/a", "deleted")]) == []


def test_a_rename_keeps_its_history() -> None:
    """One file, not two."""
    changes = [
        _change("/r/a", "modified", added=1, removed=1),
        _change("/r/b", "renamed", added=1, removed=0, previous_path="/r/a"),
    ]
    assert _merge(changes) == [("b", "renamed", None, None)]


def test_gits_numbers_and_states_count() -> None:
    """Git sees the outcome; files the agent made are untracked to it."""
    changes = [
        _change("/r/a", "modified", added=9, removed=9),
        _change("/r/n", "created", added=3, removed=0),
        _change("/r/binary", "created", added=3, removed=0),
    ]
    tree = (
        TreeFile("a", "modified", 1, 1),
        TreeFile("n", "untracked", 2, 0),
        TreeFile("binary", "untracked"),
        TreeFile("other", "deleted", 0, 7),
        TreeFile(".agent-relay/x", "untracked"),
    )
    assert _merge(changes, *tree) == [
        ("a", "modified", 1, 1),
        ("n", "created", 2, 0),
        ("binary", "created", None, None),
        ("other", "deleted", 0, 7),
    ]


def test_a_predecessors_files_are_carried_on() -> None:
    """The third agent must see what the first one touched."""
    before = [
        TouchedFile(path="a", status="created", added=2, removed=0),
        TouchedFile(path="b", status="read"),
    ]
    changes = [
        _change("/r/a", "modified", added=1, removed=1),
        _change("/r/b", "modified", added=1, removed=0),
    ]
    assert _merge(changes, before=before) == [
        ("a", "created", None, None),
        ("b", "modified", None, None),
    ]


def test_files_that_git_calls_clean_or_gone_are_left_out() -> None:
    """The work on them is in a commit or was taken back; those that were only read stay, and ignored ones."""
    before = [
        TouchedFile(path="earlier", status="modified", added=2, removed=0),
        TouchedFile(path="looked-at", status="read"),
    ]
    names = ("committed", "scratch", "ignored", "edited")
    facts = Facts(agent="a", cwd="/r", files=tuple(_change(f"/r/{name}", "created") for name in names))
    clean = ("committed", "earlier", "looked-at")
    files = (TreeFile("edited", "modified", 1, 0),)
    tree = Tree(root="/r", is_git=True, files=files, clean=clean, gone=("scratch",))
    merged = merge_files(facts, tree, before, places=_PLACES, agent="a")
    assert [(file.path, file.status) for file in merged] == [
        ("ignored", "created"),
        ("edited", "modified"),
        ("looked-at", "read"),
    ]


def test_only_the_latest_files_read_are_listed() -> None:
    """Agents read hundreds of files."""
    merged = _merge([_change(f"/r/{number}", "read") for number in range(50)])
    assert [row[0] for row in merged] == [str(number) for number in range(20, 50)]
