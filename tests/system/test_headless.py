"""A headless program: what it prints is bounded, and nothing of it is left."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.headless import OUTPUT_BYTES, run_headless


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
