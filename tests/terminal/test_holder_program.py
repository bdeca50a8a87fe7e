"""Whether a holder could be started is known before anybody is stopped for it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from agent_relay.terminal.holder_client import HolderCheck
from tests.support.installations import Installation


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """A copy of our package."""
    return Installation(str(tmp_path / "installed"))


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python of its own."""
    os.symlink(sys.executable, tmp_path / "python")
    return str(tmp_path / "python")


def build(installation: Installation, python: str) -> HolderCheck:
    entry = f"{installation.folder}/agent_relay/terminal/holder/entry.py"
    return HolderCheck(python=python, entry=entry)


def test_an_installation_that_has_gone_is_told_and_one_that_comes_back_is_seen(
    installation: Installation, python: str
) -> None:
    """Asking again starts nothing. An upgrade takes it away and brings another."""
    program, gone = build(installation, python), "agent-relay is no longer installed in "
    for _ in range(2):
        assert program.find_fault() == ""
    installation.move_away()
    assert program.find_fault().startswith(gone)
    assert build(installation, python).find_fault().startswith(gone), "it was never proven"
    installation.bring_back()
    assert program.find_fault() == ""


def test_a_python_that_has_gone_is_told(installation: Installation, python: str) -> None:
    """A removed environment takes its Python along."""
    program = build(installation, python)
    assert program.find_fault() == ""
    os.unlink(python)
    assert program.find_fault() == f"the Python that agent-relay runs on has gone: {python}"


def test_half_an_installation_is_tried_out(installation: Installation, python: str) -> None:
    """The entry stands there, and what it needs does not: only a start tells."""
    program = build(installation, python)
    assert program.find_fault() == ""
    shutil.rmtree(f"{installation.folder}/agent_relay/terminal/emulation")
    assert "cannot start anything: No module named" in program.find_fault()


def test_a_start_that_takes_too_long_is_told_as_slow(installation: Installation, tmp_path: Path) -> None:
    """It was told with the arguments of our own program, as if agent-relay were broken."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 7301\n")
    slow.chmod(0o700)
    entry = f"{installation.folder}/agent_relay/terminal/holder/entry.py"
    fault = HolderCheck(python=str(slow), entry=entry, limit_s=0.2).find_fault()
    late = f"agent-relay in {installation.folder}/agent_relay did not start a program within 0.2 s"
    assert fault == f"{late}: this machine is overloaded, or the disk it is on does not answer"
