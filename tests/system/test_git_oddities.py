"""Odd names, damaged repositories and hostile configuration neither mislead nor harm the reader."""

import os
from pathlib import Path
from time import monotonic

import pytest

from agent_relay.domain.values import Tree, TreeFile, render_path
from agent_relay.system.git.run import ask_git
from agent_relay.system.git.tree_state import find_root, read_tree
from agent_relay.system.programs import Ending
from tests.system.repositories import Git, by_path

pytestmark = pytest.mark.size("test")


@pytest.mark.parametrize(
    "name",
    ["a b", "it's", 'say "hi"', "line\nbreak", "größe-日本", "tab\there", " lead", "-dash", "*", "a\\b"],
)
def test_odd_names_of_files_and_folders_survive(tmp_path: Path, git: Git, name: str) -> None:
    """Porcelain with NUL ends is the only form that does not quote names."""
    root = tmp_path / name
    root.mkdir()
    git(root, "init", "-q")
    (root / name).write_text("1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "c")
    (root / name).write_text("2\n")
    (root / f"{name}2").write_text("2\n")
    tree = read_tree(str(root))
    assert tree.root == str(root)
    assert by_path(tree) == {
        name: TreeFile(name, "modified", 1, 1),
        f"{name}2": TreeFile(f"{name}2", "untracked"),
    }


def test_undecodable_names_and_contents_are_carried(repository: Path, git: Git) -> None:
    """Names are bytes on Linux; a Latin-1 file must neither crash the reader nor the packet."""
    name = os.path.join(os.fsencode(repository), b"caf\xe9.txt")
    with open(name, "wb") as stream:
        stream.write(b"caf\xe9\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "latin")
    with open(name, "wb") as stream:
        stream.write(b"th\xe9\n")
    tree = read_tree(str(repository))
    assert tree.files == (TreeFile("caf\udce9.txt", "modified", 1, 1),)
    assert render_path(tree.files[0].path) == "caf\\xe9.txt"


def test_what_is_no_working_tree_is_a_note(
    repository: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions run in any folder, and it may be deleted meanwhile; that is not our crash."""
    (plain := tmp_path / "plain").mkdir()
    (broken := tmp_path / "broken").mkdir()
    (broken / ".git").write_text("gitdir: /nowhere/at/all\n")
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert (read_tree(str(plain)), find_root(str(plain))) == (Tree(str(plain)), None)
    assert read_tree(str(tmp_path / "gone")).note == (
        "the folder cannot be entered: No such file or directory"
    )
    bare = read_tree(str(tmp_path / "bare.git"))
    assert (bare.is_git, bare.note) == (False, "a repository without a work tree")
    assert "not a git repository" in read_tree(str(broken)).note
    monkeypatch.setenv("PATH", str(repository))
    assert read_tree(str(repository)) == Tree(str(repository), note="git is not installed")
    assert find_root(str(repository)) is None


@pytest.mark.parametrize("victim", ["index", "HEAD", "config"])
def test_a_corrupt_repository_is_a_note(repository: Path, victim: str) -> None:
    """A power cut can tear any of git's files; the handoff goes on without git facts."""
    (repository / ".git" / victim).write_bytes(b"\0garbage\0" * 3)
    tree = read_tree(str(repository))
    assert tree.note != ""
    assert tree.files == ()


def test_configured_programs_are_never_started(repository: Path, git: Git, tmp_path: Path) -> None:
    """A cloned repository or the user's config could otherwise run code whenever relay looks."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\ncat \"$1\" 2>/dev/null\nexit 0\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "diff.t.textconv", "diff.t.command"):
        git(repository, "config", key, str(trap))
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit"):
        (hooks / hook).symlink_to(trap)
    (repository / ".gitattributes").write_text("*.txt diff=t\n")
    (repository / "a.txt").write_text("changed\n")
    os.utime(repository / "b.txt", (1, 1))
    before = (repository / ".git" / "index").read_bytes()
    tree = read_tree(str(repository))
    assert {name: file.status for name, file in by_path(tree).items()} == {
        ".gitattributes": "untracked",
        "a.txt": "modified",
    }
    assert not (tmp_path / "sprung").exists()
    assert (repository / ".git" / "index").read_bytes() == before


def test_the_environment_of_a_git_hook_does_not_mislead(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started from a hook or an alias, GIT_DIR points at another repository."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert read_tree(str(repository)).root == str(repository)


def test_the_fingerprint_follows_contents_and_not_times(repository: Path, git: Git) -> None:
    """Freshness at pickup: a touched file is not a changed one, an edit of the same length is."""
    (repository / "a.txt").write_text("one\nTWO\nthree\n")
    first = read_tree(str(repository)).fingerprint
    assert read_tree(str(repository)).fingerprint == first
    os.utime(repository / "a.txt", (1, 1))
    assert read_tree(str(repository)).fingerprint == first
    (repository / "a.txt").write_text("one\nDUO\nthree\n")
    second = read_tree(str(repository)).fingerprint
    git(repository, "add", "a.txt")
    third = read_tree(str(repository)).fingerprint
    git(repository, "commit", "-qm", "c")
    fourth = read_tree(str(repository)).fingerprint
    (repository / "new").write_text("")
    fifth = read_tree(str(repository)).fingerprint
    (repository / "new").write_text("more")
    sixth = read_tree(str(repository)).fingerprint
    assert len({first, second, third, fourth, fifth, sixth}) == 6


def test_a_huge_untracked_file_is_named_but_not_read(repository: Path) -> None:
    """Thirty megabytes of data or a named pipe beside the code must neither slow nor block a handoff."""
    with open(repository / "data.bin", "wb") as stream:
        stream.truncate(30 << 20)
    os.mkfifo(repository / "pipe")
    assert set(by_path(read_tree(str(repository)))) >= {"data.bin"}


def test_long_lists_are_bounded_and_counted(repository: Path) -> None:
    """A build folder somebody forgot to ignore must not flood the packet."""
    (repository / "out").mkdir()
    for number in range(250):
        (repository / "out" / f"{number:03}.o").write_text("")
    tree = read_tree(str(repository))
    assert len(tree.files) == 200
    assert tree.omitted == 50
    assert tree.files[0].path == "out/000.o"


def test_a_command_that_says_too_much_is_ended_at_once(repository: Path) -> None:
    """It blocks on a full pipe; waiting for its deadline would hold up the handoff for ten seconds."""
    (repository / "a.txt").write_text("x\n" * 100_000)
    answers = ask_git(str(repository), ("diff", "--no-ext-diff", "HEAD", "--"), ("status",), limit_bytes=5000)
    assert [answer.ending for answer in answers] == [Ending.LONG, Ending.ANSWERED]


def test_a_git_that_hangs_is_ended_with_everything_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system or a filter may never answer; a handoff must go on."""
    (tmp_path / "git").write_text(f"#!/bin/sh\n/bin/sleep 600 &\necho $! > {tmp_path}/pid\nwait\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (answer,) = ask_git(str(tmp_path), ("status",), timeout_s=3)
    assert answer.ending is Ending.LATE
    assert not answer.ok
    process = Path("/proc") / (tmp_path / "pid").read_text().strip() / "stat"
    until = monotonic() + 60
    while process.exists() and process.read_text().rpartition(")")[2].split()[0] != "Z":
        assert monotonic() < until


def test_a_changed_link_is_sealed_by_where_it_points(repository: Path, git: Git) -> None:
    """What lies behind the link is not part of the tree."""
    (repository / "link").symlink_to("a.txt")
    git(repository, "add", "link")
    git(repository, "commit", "-qm", "link")
    (repository / "link").unlink()
    (repository / "link").symlink_to("b.txt")
    first = read_tree(str(repository)).fingerprint
    (repository / "link").unlink()
    (repository / "link").symlink_to("c.txt")
    assert read_tree(str(repository)).fingerprint != first
