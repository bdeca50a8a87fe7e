"""Figures served to Prometheus while others on the machine ask for much, slowly, or nothing at all."""

import contextlib
import http.client
import os
import socket
import threading

import pytest

from agent_relay.faces.export._figures import LatestFigures
from agent_relay.faces.export._prometheus import start_prometheus
from tests.support.legs import wait_until

pytestmark = pytest.mark.size("test")


def _scrape(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _list_listeners() -> set[threading.Thread]:
    """The threads that answer somebody."""
    return {thread for thread in threading.enumerate() if "process_request_thread" in thread.name}


def test_hundreds_who_ask_for_nothing_take_neither_threads_nor_files(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Anybody on the machine may connect: it must not end of that, nor fill a terminal with words."""
    port = start_prometheus(LatestFigures(), 0)
    before, files = _list_listeners(), len(os.listdir("/proc/self/fd"))
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        wait_until(lambda: len(_list_listeners() - before) >= 16, "as many as may be to be listened to")
        assert len(_list_listeners() - before) == 16
        assert len(os.listdir("/proc/self/fd")) <= files + 200 + 40
    wait_until(lambda: _scrape(port) == 200, "a scrape to be answered again")
    assert capfd.readouterr().err == ""
