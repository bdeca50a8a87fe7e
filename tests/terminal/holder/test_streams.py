"""A child with files for its streams has no terminal, and all it says is kept."""

import os

import pytest

from tests.support.legs import Wire, hold, python

pytestmark = pytest.mark.size("test")

PROGRAM = """
import os, sys
def has_terminal():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
sys.stdout.write(sys.stdin.read() * 2)
sys.stderr.write(f"{has_terminal()} {[os.isatty(fd) for fd in range(3)]} {os.getsid(0) == os.getpid()}")
sys.exit(3)
"""


def test_the_streams_are_files_and_no_terminal_is_there(tmp_path: object) -> None:
    """What asks on a terminal would wait for somebody for ever; output of any size outlives the tail."""
    paths = [f"{tmp_path}/{name}" for name in ("given", "said", "errors")]
    with open(paths[0], "w", encoding="utf-8") as file:
        file.write("x" * 500_000)
    with hold(str(tmp_path), python(PROGRAM), streams=paths) as held, Wire(held.folder) as wire:
        assert wire.wait_for_exit()["status"] == 3
        assert wire.output() == b""
    with open(paths[1], encoding="utf-8") as file:
        assert file.read() == "x" * 1_000_000
    with open(paths[2], encoding="utf-8") as file:
        assert file.read() == "False [False, False, False] True"
    assert [os.stat(path).st_mode & 0o777 for path in paths[1:]] == [0o600, 0o600]
