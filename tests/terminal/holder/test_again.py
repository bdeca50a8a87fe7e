"""A program that asks to be started again by its exit status runs anew on the same terminal."""

import time

import pytest

from tests.support.legs import Wire, hold, python, wait_until

pytestmark = pytest.mark.size("every")

RESTARTS = """
import os, sys
again = os.path.exists({path!r})
open({path!r}, "a").close()
print("again" if again else "once", os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
input()
print("restarting", flush=True)
sys.exit(7 if again else 99)
"""


@pytest.mark.size("test")
def test_a_program_that_asks_for_it_is_started_again(tmp_path: object) -> None:
    """An agent restarts itself when a folder became trusted; its session must not end with that."""
    program = python(RESTARTS.format(path=f"{tmp_path}/mark"))
    with hold(str(tmp_path), program, again_status=99) as held, Wire(held.folder) as wire:
        wire.wait_for_text("once True True")
        began = time.monotonic()
        first = wire.ask("hello")["child"]
        wait_until(lambda: time.monotonic() - began > 0.6, "a program that did start")
        wire.type(b"\r")
        screen = wire.wait_for_text("again True True").text()
        assert "once True True" in screen
        assert wire.ask("hello")["child"] != first
        wire.wait_for_text("restarting")
        # Whoever looked after the first one looks after the second one now.
        begun = wire.ask("watch")["child"]
        wait_until(lambda: time.monotonic() - began > 1.4, "timers of the first one to ring")
        assert wire.ask("hello")["child"] == begun
        wire.type(b"\r")
        assert wire.wait_for_exit()["status"] == 7


def test_a_program_that_cannot_start_is_not_started_for_ever(tmp_path: object) -> None:
    """A loop would burn a processor and hide what is wrong."""
    program = python("import sys; sys.exit(99)")
    with hold(str(tmp_path), program, again_status=99) as held, Wire(held.folder) as wire:
        assert wire.wait_for_exit()["status"] == 99
