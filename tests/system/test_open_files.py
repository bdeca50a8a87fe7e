"""Whose file it is, by what a process has open: a file's own words could say anything."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.system.processes import find_open_elsewhere, find_open_files

pytestmark = pytest.mark.size("test")

HOLD = """
import subprocess, sys
file = open(sys.argv[1], "a")
below = subprocess.Popen([sys.executable, "-c", sys.argv[2], *sys.argv[3:]], stdin=subprocess.PIPE,
    stdout=subprocess.PIPE) if sys.argv[3:] else None
if below:
    below.stdout.readline()
print("open", flush=True)
sys.stdin.read()
"""
Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process that has the first file open, below it one that has the next one, and so on."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*paths: Path) -> int:
        argv = [sys.executable, "-c", HOLD, str(paths[0]), HOLD, *map(str, paths[1:])]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        return process.pid

    yield begin
    for process in running:
        process.communicate()


def is_log(path: str) -> bool:
    """Whether the file is of the kind asked about."""
    return path.endswith(".jsonl")


def test_the_file_a_process_has_open_is_found_by_its_real_path(tmp_path: Path, start: Start) -> None:
    """The kernel knows no links: a home that is one must not hide a conversation."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    pid = start(tmp_path / "link" / "one.jsonl")
    assert find_open_files(pid, is_log) == {str(tmp_path / "real" / "one.jsonl")}
    assert find_open_files(pid, lambda path: path.endswith(".other")) == frozenset()


def test_the_nearest_of_a_family_tells(tmp_path: Path, start: Start) -> None:
    """An agent that starts another one of its kind in a shell works in the outer conversation."""
    wrapped = start(tmp_path / "plain.txt", tmp_path / "outer.jsonl", tmp_path / "inner.jsonl")
    assert find_open_files(wrapped, is_log) == {str(tmp_path / "outer.jsonl")}


def test_of_a_process_that_is_gone_nobody_can_tell() -> None:
    """That it has nothing open and that nobody knows are two answers."""
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert find_open_files(process.pid, is_log) is None


def test_files_that_others_have_open_are_told_from_ours(tmp_path: Path, start: Start) -> None:
    """A conversation somebody else is in is not ours, however new it is."""
    ours, theirs, nobodys = (tmp_path / f"{name}.jsonl" for name in ("ours", "theirs", "nobodys"))
    nobodys.touch()
    pid = start(ours)
    start(theirs)
    paths = {os.path.realpath(path) for path in (ours, theirs, nobodys)}
    assert find_open_elsewhere(paths, but=pid) == {str(theirs)}
    assert find_open_elsewhere(set(), but=pid) == frozenset()
