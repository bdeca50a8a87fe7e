"""Repositories of git for the tests here."""

from pathlib import Path

import pytest

from tests.support.race_places import dirty
from tests.system.repositories import Git, make_repository, prepare_git


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in a folder."""
    return prepare_git(tmp_path, monkeypatch)


@pytest.fixture
def repository(tmp_path: Path, git: Git) -> Path:
    """One commit of `a.txt` and `b.txt`."""
    return make_repository(tmp_path / "repository", git)


@pytest.fixture
def root(tmp_path: Path, git: Git) -> Path:
    """A repository in the middle of work."""
    root = make_repository(tmp_path / "re pository", git)
    dirty(root, git)
    return root
