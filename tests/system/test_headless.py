"""A headless program: what it prints is bounded, and nothing of it is left."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.headless import OUTPUT_BYTES, run_headless
from agent_relay.system.processes import born, is_alive, send_signal

pytestmark = pytest.mark.size("test")


def run(script: str, folder: Path) -> None:
    """A shell runs the script to its end."""
    words, env = ["/bin/sh", "-c", script], dict(os.environ)
    asyncio.run(run_headless(words, env=env, cwd=str(folder), folder=str(folder), text="", limit_s=60))


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_program_that_floods_a_stream_is_ended_long_before_its_time(stream: str, tmp_path: Path) -> None:
    """Its folder is often memory; errors take as much room there as answers."""
    script = f"head -c {OUTPUT_BYTES + 1} /dev/zero >&{stream}; exec sleep 600"
    with pytest.raises(RelayError, match="it printed more than 16 MiB"):
        run(script, tmp_path)


def test_a_process_that_left_the_program_is_ended_with_it(tmp_path: Path) -> None:
    """It has a session of its own, and its parent is gone."""
    script = "(setsid sh -c 'echo $$ > left; exec sleep 600' &); until [ -s left ]; do :; done"
    run(script, tmp_path)
    left = int((tmp_path / "left").read_text())
    began = born(left) or 0
    was_alive = is_alive(left, began)
    send_signal(left, began, signal.SIGKILL)
    assert not was_alive
