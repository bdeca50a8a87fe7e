"""A run of the tests ends, and means the same, however it was started."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.size("test")

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IGNORING = f"""
import os, signal, sys
for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGTERM", "SIGCHLD"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
"""
DISPOSITIONS = """
import signal
import subprocess

def test_a_started_program_has_default_signals():
    status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
    masks = dict(line.split(":") for line in status.splitlines() if line.startswith(("SigIgn", "SigBlk")))
    # The C library keeps some signals to itself, which can be neither asked about nor set.
    ours = sum(1 << number - 1 for number in signal.valid_signals())
    assert {name: int(mask, 16) & ours for name, mask in masks.items()} == {"SigBlk": 0, "SigIgn": 0}
"""
STUCK = """
import threading

def test_one():
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait()

def test_two():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass
"""
SIZED = """
import pytest

def test_small(): pass

@pytest.mark.size("test")
@pytest.mark.parametrize("case", [1, pytest.param(2, marks=pytest.mark.size("every"))])
def test_middle(case): pass

@pytest.mark.size("bench")
def test_measure(): pass
"""


def test_programs_start_with_default_signals_under_nohup(tmp_path: Path) -> None:
    """`nohup make test &` leaves signals ignored; programs that inherit it do not end when a test says so."""
    found = _run(str(tmp_path), DISPOSITIONS, [sys.executable, "-c", IGNORING])
    assert found.returncode == 0, found.stdout


def test_a_limit_strikes_again_while_a_test_cleans_up_and_at_last_ends_the_process(tmp_path: Path) -> None:
    """What a `finally` waits for has a limit too; a run that never ends is worse than one that ends red."""
    found = _run(str(tmp_path), STUCK, [sys.executable])
    assert found.returncode == 1
    assert "test_two did not end after its limit" in found.stdout


@pytest.mark.size("every")
def test_each_run_plays_what_is_of_its_size_or_smaller(tmp_path: Path) -> None:
    """What is left out of a short run is played by a longer one, and a measurement only by its own."""
    played = {size: _count_passed(tmp_path, f"--size={size}") for size in ("check", "test", "every", "bench")}
    assert played == {"check": 1, "test": 2, "every": 3, "bench": 1}
    assert _count_passed(tmp_path) == 3


def _count_passed(folder: Path, *options: str) -> int:
    done = _run(str(folder), SIZED, [sys.executable], *options)
    assert done.returncode == 0, done.stdout
    found = re.search(r"(\d+) passed", done.stdout)
    assert found, done.stdout
    return int(found[1])


def _run(folder: str, text: str, python: list[str], *more: str) -> subprocess.CompletedProcess[str]:
    """Run `text` as a test of its own, with this house's conftest and a limit of a second."""
    with open(os.path.join(folder, "test_inner.py"), "w", encoding="utf-8") as file:
        file.write(text)
    options = [
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "--timeout=1",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
        *more,
    ]
    return subprocess.run(
        [*python, *options, "-c", os.devnull, os.path.join(folder, "test_inner.py")],
        cwd=CHECKOUT,
        env={**os.environ, "TESTS_CLEAN_UP_S": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
