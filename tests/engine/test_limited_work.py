"""Work in a limited process gets a second server before anything is left out, or done without a limit."""

import os
import signal
from collections.abc import Iterator

import pytest

from agent_relay.engine.publishing.limited_work import run_limited
from agent_relay.system.limited_process import LimitedProcess, WorkLimit, end_server
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

ROOMY = WorkLimit(processor_s=30, wall_s=120)


@pytest.fixture(autouse=True)
def _server() -> Iterator[None]:
    yield
    end_server()


@pytest.mark.parametrize("how", sized([signal.SIGSTOP, signal.SIGKILL], [signal.SIGKILL]))
def test_work_whose_server_is_stopped_or_killed_is_done_by_another(how: signal.Signals) -> None:
    """A packet lacked all that the agent had said, as less was tried next instead."""
    server = run_limited(LimitedProcess(), ROOMY, os.getpgrp)
    os.kill(server, how)
    other = run_limited(LimitedProcess(), WorkLimit(processor_s=30, wall_s=30), os.getpgrp)
    assert other not in {server, os.getpgrp()}
