"""A holder nobody hears of leaves nobody at work: its leg may be begun anew by then."""

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.agents.launch import STREAM_FILE
from agent_relay.domain.session import Leg
from agent_relay.engine.legs.leg_start import was_begun
from agent_relay.system.processes import end_marked, find_marked
from agent_relay.terminal.holder import entry
from agent_relay.terminal.holder.wire import HolderSpec, render_spec
from tests.support.legs import python, wait_until
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

if TYPE_CHECKING:
    from agent_relay.engine.services import Services

_MARK = "RELAY_TEST_UNHEARD"


def is_free(lock: int) -> bool:
    """Whether nobody holds the lock any more."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def hold_unheard(
    tmp_path: Path, program: str, *, given: str = "", is_folder_gone: bool = False, sign: Path | None = None
) -> list[int]:
    """What is left of `program` after a holder that could not tell whoever started it.

    It gives up once `sign` is there; until then nothing fits into the pipe it tells by.
    """
    folder = tmp_path / "leg"
    folder.mkdir(mode=0o700)
    theirs = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    ours = os.open(folder / "lock", os.O_RDWR)
    (tmp_path / "given").write_text(given)
    spec = HolderSpec(
        argv=python(program),
        env={**os.environ, _MARK: str(tmp_path)},
        cwd=str(tmp_path),
        leg_folder=str(folder),
        rows=24,
        cols=80,
        lock_fd=theirs,
        streams=[str(tmp_path / name) for name in ("given", "said", "errors")],
    )
    heard, holder, orders = start_holder(theirs, is_heard=sign is None)
    if is_folder_gone:
        (folder / "lock").unlink()
        folder.rmdir()
    elif sign is None:
        os.close(heard)
    with holder:
        orders.sendall(render_spec(spec))
        orders.close()
        if sign is not None:
            wait_until(sign.exists, "the program's sign")
            os.close(heard)
        wait_until(lambda: is_free(ours), "the holder's end")
    if is_folder_gone:
        os.close(heard)
    os.close(ours)
    left = find_marked(_MARK, str(tmp_path))
    end_marked(_MARK, str(tmp_path))
    assert (tmp_path / "said").exists()
    return left


def start_holder(lock: int, *, is_heard: bool) -> tuple[int, "subprocess.Popen[bytes]", socket.socket]:
    """Where a holder will tell how it went, its starter, and where that takes its spec.

    Where nobody hears it, it waits to be.
    """
    heard, told = os.pipe()
    if not is_heard:
        os.set_blocking(told, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(told, b"x" * 4096)
        os.set_blocking(told, True)
    ours, theirs = socket.socketpair()
    holder = subprocess.Popen(
        [sys.executable, "-I", "-S", entry.__file__],
        stdin=theirs,
        stdout=told,
        stderr=subprocess.DEVNULL,
    )
    theirs.close()
    socket.send_fds(ours, [b" "], [lock])
    os.close(lock)
    os.close(told)
    return heard, holder, ours


@pytest.mark.parametrize("is_folder_gone", sized([False, True], [False]))
def test_a_program_does_not_outlive_a_holder_nobody_heard_of(tmp_path: Path, *, is_folder_gone: bool) -> None:
    """A daemon killed while it began a turn, or that gave up waiting, begins it anew: two agents at one task.

    A program with files for its streams has no terminal whose end would tell it.
    """
    program = "import time; time.sleep(600)"
    assert hold_unheard(tmp_path, program, is_folder_gone=is_folder_gone) == []


@pytest.mark.parametrize(
    ("does", "is_unasked"),
    [("pass", True), ("sys.stdin.read(1)", False), ("print('x', flush=True)", False)],
    ids=("starts", "reads", "says"),
)
def test_a_program_that_was_ended_before_it_was_asked_is_told_from_one_that_may_have_been(
    tmp_path: Path,
    does: str,
    is_unasked: bool,  # noqa: FBT001 - a table's column
) -> None:
    """Its turn is begun again: told as lost, it would be the user's to find out that nobody worked on it."""
    sign = tmp_path / "sign"
    program = f"import sys, time; {does}; open({str(sign)!r}, 'w').close(); time.sleep(600)"
    assert hold_unheard(tmp_path, program, given="the task", sign=sign) == []
    folders = SimpleNamespace(legs=str(tmp_path))
    leg = Leg("leg", "demo", 1, datetime.now(UTC), headless=True)
    (tmp_path / "said").rename(tmp_path / "leg" / STREAM_FILE)
    assert was_begun(cast("Services", SimpleNamespace(folders=folders)), leg) is not is_unasked
