"""Figures are pushed to the address the user wrote, or served; nothing of theirs goes along, nobody waits."""

import contextlib
import http.client
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import requests

from agent_relay.domain.protocol.watch_output import Figure
from agent_relay.faces.export._figures import LatestFigures
from agent_relay.faces.export._otlp import DirectSession, start_otlp
from agent_relay.faces.export._prometheus import start_prometheus
from agent_relay.system.net.delivery_report import Count, DeliveryCounter, Receiver
from agent_relay.system.net.webhook import Address, ask_system
from tests.faces.export.exporter import listen
from tests.support.legs import wait_until

COLLECTOR = Receiver("otlp", "The collector", "push", "pushes")


@contextlib.contextmanager
def answer_once(said: bytes, more: bytes, pause_s: float = 0.0) -> Iterator[str]:
    """The address of a collector that says `said`, and `more` again and again as long as that is taken."""
    is_over = threading.Event()

    def go_on() -> None:
        taken, _address = listening.accept()
        with taken, contextlib.suppress(OSError):
            taken.sendall(said)
            while not is_over.wait(pause_s):
                taken.sendall(more)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        is_over.set()
        thread.join(60)


def push(port: int, *, until: str) -> tuple[Count, list[str]]:
    """What was counted and said of pushes to that port, ended once one was taken, or `until` was said."""
    newest, lines = LatestFigures(), list[str]()
    newest.put([Figure("turns", "counter", "Turns.", (), {(): 1.0})])
    deliveries = DeliveryCounter(COLLECTOR, lines.append)
    newest.count(deliveries)
    provider = start_otlp(newest, f"http://127.0.0.1:{port}", deliveries, interval_s=3600)
    wait_until(lambda: deliveries.count.taken or any(until in line for line in lines), "the first push")
    # One that takes pushes is given the time for the last one; with another, it is tried for long.
    provider.shutdown(timeout_millis=60_000 if deliveries.count.taken else 1000)
    return deliveries.count, lines


def test_a_push_follows_no_redirect_and_takes_no_login_or_proxy_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address was checked, where it points to was not; logins in `.netrc` are other tools'."""
    logins = tmp_path / "netrc"
    logins.write_text("machine 127.0.0.1 login user password not-ours\n")
    logins.chmod(0o600)
    monkeypatch.setenv("NETRC", str(logins))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with listen(307) as collector:
        count, lines = push(collector.server_port, until="given up")
    assert (set(collector.heard), collector.logins) == ({"/v1/metrics"}, {""})
    assert (count.taken, count.trouble) == (0, "it answered 307")
    assert lines[-1] == "The collector does not take pushes: it answered 307. 1 push given up so far."


def test_the_first_push_is_made_at_once_and_the_last_one_at_the_end() -> None:
    """Whoever wrote a wrong address must not wait a minute to hear of it."""
    with listen(200) as collector:
        assert push(collector.server_port, until="never") == (Count(taken=2), [])


@pytest.mark.size("test")
@pytest.mark.parametrize("status", [400, 401, 404, 503])
def test_a_collector_that_answers_errors_is_said_to(status: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Also one that is only busy, while it is still tried: in our words, once, and in nobody else's."""
    with listen(status) as collector:
        count, lines = push(collector.server_port, until=f"it answered {status}")
    assert count.trouble == f"it answered {status}"
    assert lines[0].startswith(f"The collector does not take pushes: it answered {status}. ")
    assert capfd.readouterr().err == ""


@pytest.mark.size("test")
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nX: "], ids=["nothing", "drip-by-drip"])
def test_a_collector_that_never_ends_its_answer_is_hung_up_on(said: bytes) -> None:
    """Each byte would begin a socket's limit anew, and the thread that pushes never push again."""
    troubles: list[str] = []
    with answer_once(said, said[-1:], 0.05) as address:
        session = DirectSession(troubles.append, is_near=True, limit_s=0.5)
        with pytest.raises(requests.RequestException):
            session.post(address, b"figures", timeout=60)
    assert troubles == ["it does not answer in time"]


def test_a_collector_whose_name_nobody_answers_for_is_given_up() -> None:
    """The system asks a name server that is gone for a minute and more; the next push must come."""
    answers, troubles, ends = threading.Event(), list[str](), list[str]()

    def look_up(_host: str, port: int) -> Sequence[Address]:
        assert answers.wait(120)
        return ask_system("127.0.0.1", port)

    session = DirectSession(troubles.append, is_near=True, limit_s=0.1, look_up=look_up)

    def push() -> None:
        try:
            session.post("http://collector.example/", b"figures", timeout=10)
        except requests.RequestException as error:
            ends.append(type(error).__name__)

    thread = threading.Thread(target=push, daemon=True)
    thread.start()
    thread.join(60)
    answers.set()
    assert (len(ends), troubles) == (1, ["it does not answer in time"])


def test_an_answer_is_not_read_for_ever() -> None:
    """Its contents say nothing we need; a collector that sends without an end would fill memory."""
    troubles: list[str] = []
    with answer_once(b"HTTP/1.1 200 OK\r\n\r\n", b"a" * 65_536) as address:
        session = DirectSession(troubles.append, is_near=True)
        assert session.post(address, b"figures").status_code == 200
    assert troubles == [""]


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


@pytest.mark.size("test")
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
