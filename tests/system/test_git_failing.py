"""What git failed to tell is unknown: it is never taken for nothing."""

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.domain.documents.packet import GitState, Reason, ResumePacket
from agent_relay.domain.errors import RelayError
from agent_relay.domain.values import Tree, TreeFile
from agent_relay.packet.freshness import verify_freshness
from agent_relay.system.git.run import GitMissingError, ask_git
from agent_relay.system.git.tree_state import find_root, read_tree
from tests.system.repositories import Git, make_repository, prepare_git

pytestmark = pytest.mark.size("test")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One commit, and a changed and an untracked file."""
    git: Git = prepare_git(tmp_path, monkeypatch)
    repository = make_repository(tmp_path / "repository", git)
    (repository / "a.txt").write_text("changed\n")
    (repository / "new.txt").write_text("new\n")
    return repository


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, does: str) -> None:
    """From now on git `does` something else where `word` is one of its words, and all else as ever."""
    real = shutil.which("git")
    folder = tmp_path / "bin"
    folder.mkdir()
    script = f'#!/bin/sh\nfor one in "$@"; do [ "$one" = {word} ] && {does}; done\nexec {real} "$@"\n'
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@contextmanager
def few_descriptors() -> Iterator[None]:
    """This process can open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def build_packet(tree: Tree) -> ResumePacket:
    """A packet written when the tree was `tree`."""
    return ResumePacket(
        packet_id="P",
        session_id="S",
        sequence=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        previous_agent="alpha",
        target_agent="beta",
        checkpoint_reason=Reason.MANUAL,
        git=GitState(root=tree.root, branch=tree.branch, head=tree.head, fingerprint=tree.fingerprint),
    )


def test_a_status_that_does_not_come_is_no_clean_tree(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow disk a successor was told of a repository without commits, and that its commits were gone."""
    packet = build_packet(read_tree(str(repository)))
    stand_in(tmp_path, monkeypatch, "status", "exec sleep 600")
    tree = read_tree(str(repository))
    why = "git cannot read this repository: it did not answer in time"
    assert tree == Tree(str(repository), is_git=True, dirty=None, note=why, is_whole=False)
    assert verify_freshness(packet, tree) == (f"cannot tell whether the tree changed: {why}",)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("exec sleep 600", "it did not answer in time"),
        ("echo fatal: out of memory >&2 && exit 128", "out of memory"),
    ],
)
def test_untracked_files_that_could_not_be_listed_are_unknown(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, why: str
) -> None:
    """What git did tell is kept; that there is nothing more, nobody says."""
    stand_in(tmp_path, monkeypatch, "ls-files", does)
    tree = read_tree(str(repository))
    assert (tree.branch, tree.dirty, tree.fingerprint, tree.is_whole) == ("main", True, "", False)
    assert tree.files == (TreeFile("a.txt", "modified", 1, 3),)
    assert tree.note.endswith(f"git did not list untracked files: {why}")


def test_a_tree_with_nothing_but_unlisted_files_is_not_called_clean(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the answer says nothing about the other half."""
    (repository / "a.txt").write_text("one\ntwo\nthree\n")
    stand_in(tmp_path, monkeypatch, "ls-files", "exit 1")
    assert read_tree(str(repository)).dirty is None


def test_a_folder_git_does_not_answer_about_is_not_called_bare(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two questions may be answered."""
    stand_in(tmp_path, monkeypatch, "--show-toplevel", "exec sleep 600")
    tree = read_tree(str(repository), limit_s=0.5)
    assert (tree.note, tree.is_whole) == ("git cannot read this folder: it did not answer in time", False)


def test_a_root_that_is_not_told_in_time_is_an_error(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder below it would get a session of its own, beside the one at work in the repository."""
    (repository / "below").mkdir()
    stand_in(tmp_path, monkeypatch, "rev-parse", "exec sleep 600")
    with pytest.raises(RelayError, match=r"cannot tell which repository .*: git did not answer in time"):
        find_root(str(repository / "below"), limit_s=0.5)


def test_a_process_that_can_open_nothing_more_does_not_say_that_git_is_missing(repository: Path) -> None:
    """A daemon with many terminals would tell successors that there is no repository."""
    with few_descriptors():
        tree = read_tree(str(repository))
        with pytest.raises(RelayError, match="git cannot be started"):
            find_root(str(repository))
    assert (tree.note, tree.is_whole) == ("git cannot be started: Too many open files", False)


def test_an_answer_is_cut_if_anything_is_missing_of_it(repository: Path) -> None:
    """The rest of what was read at once was dropped, and what was left passed for the whole."""
    (repository / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 3001)))
    (answer,) = ask_git(str(repository), ("hash-object", "-w", "a.txt"))
    show = ("cat-file", "blob", answer.output.decode().strip())
    (part,) = ask_git(str(repository), show, limit_bytes=13_892)
    (whole,) = ask_git(str(repository), show, limit_bytes=13_893)
    assert (len(part.output), part.is_cut, part.ok) == (13_892, True, False)
    assert (len(whole.output), whole.is_cut, whole.ok) == (13_893, False, True)


def test_without_a_folder_git_is_not_asked_about_its_own(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git -C ""` runs in the folder of whoever asks: another tree would be taken for the session's."""
    monkeypatch.chdir(repository)
    with pytest.raises(GitMissingError, match="No such file or directory"):
        ask_git("", ("status", "--porcelain"))
