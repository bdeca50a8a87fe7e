"""Tracked files speak about the project only, wherever they were written."""

import os
import re
import subprocess
import sys

import pytest

from tests.house import tree


def test_no_tracked_file_names_the_folder_it_was_written_in() -> None:
    """A path of one machine is wrong on every other, and says more about the author than about the code."""
    needle = re.compile(re.escape(tree.CHECKOUT) + r"(?![\w-])")
    assert [name for name in tree.tracked_files() if needle.search(tree.read_text(name))] == []


@pytest.mark.size("test")
def test_no_tracked_file_names_a_package_host() -> None:
    """A clone elsewhere may not reach them; package clients are configured outside the tree."""
    hosts = _configured_hosts()
    assert [
        f"{name}: {host}"
        for name in tree.tracked_files()
        for host in hosts
        if re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])", tree.read_text(name))
    ] == []


def test_no_tracked_file_carries_a_conflict_marker() -> None:
    """A half-merged file parses surprisingly often."""
    marker = re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE)
    names = [name for name in tree.tracked_files() if name.endswith((".py", ".toml", ".md", ".j2"))]
    assert [name for name in names if marker.search(tree.read_text(name))] == []


def test_the_readme_names_the_two_commands_that_prove_it() -> None:
    """Whoever clones this tries these two first."""
    readme = tree.read_text("README.md")
    assert "make demo" in readme
    assert "make test" in readme


def _configured_hosts() -> set[str]:
    """Hosts this machine's package clients were told to use; empty where they use the public ones."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    told += "\n".join(
        value for name, value in os.environ.items() if name.lower().endswith(("registry", "index_url"))
    )
    return set(re.findall(r"https?://([A-Za-z0-9.-]+\.[A-Za-z0-9.-]+)", told))
