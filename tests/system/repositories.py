"""Git repositories for tests, made by the git program away from the machine's configuration."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.domain.values import Tree, TreeFile

Git = Callable[..., str]
_CONFIG = (
    "[user]\nname=A\nemail=a@example.invalid\n[init]\ndefaultBranch=main\n"
    '[protocol "file"]\nallow=always\n[commit]\ngpgSign=false\n'
)


def prepare_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A function that runs git with an identity of its own and gives back what it prints."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text(_CONFIG)

    def run(cwd: object, *arguments: str | bytes) -> str:
        done = subprocess.run(["git", *arguments], cwd=str(cwd), capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace").strip()

    return run


def make_repository(root: Path, git: Git) -> Path:
    """A repository with one commit of `a.txt` (three lines) and `b.txt`."""
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "b.txt").write_text("b\n" * 20)
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def by_path(tree: Tree) -> dict[str, TreeFile]:
    """The tree's files by path."""
    return {file.path: file for file in tree.files}
