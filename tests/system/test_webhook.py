"""Telling a webhook: bounded in tries, in memory, and in where it may be led."""

import contextlib
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from agent_relay.system.net.delivery_report import Count, DeliveryCounter
from agent_relay.system.net.delivery_report import Receiver as Named
from agent_relay.system.net.webhook import MOST_WAITING, WAITS_S, Webhook

EVENT = {"event": "leg.asking", "id": "S:1"}


class Heard(DeliveryCounter):
    """Deliveries, and every line that was said of them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        super().__init__(Named("webhook", "The webhook", "event", "events"), self.lines.append)


class Receiver:
    """A receiver on this machine that answers with `answers`, the last one for ever."""

    def __init__(self, answers: list[int]) -> None:
        self.heard: list[object] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                receiver.heard.append(
                    (self.path, self.headers["Content-Type"], json.loads(self.rfile.read(size)))
                )
                status = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(status)
                if status == HTTPStatus.FOUND:
                    self.send_header("Location", f"http://127.0.0.1:{receiver.port}/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                receiver.heard.append(self.path)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
                del format, args

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/hook?x=1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,)).start()

    def close(self) -> None:
        """Nobody listens any more."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receivers() -> Iterator[list[Receiver]]:
    """Those that are to be closed."""
    made: list[Receiver] = []
    yield made
    for one in made:
        one.close()


def receive(receivers: list[Receiver], *answers: int) -> tuple[Receiver, Webhook, list[float]]:
    """A receiver, who tells it, and how long that one paused."""
    receiver, hook, paused, _ = receive_counted(receivers, *answers)
    return receiver, hook, paused


def receive_counted(receivers: list[Receiver], *answers: int) -> tuple[Receiver, Webhook, list[float], Heard]:
    """A receiver, who tells it, how long that one paused, and who counts."""
    receiver = Receiver(list(answers))
    receivers.append(receiver)
    paused: list[float] = []
    heard = Heard()
    return receiver, Webhook(receiver.url, heard, pause=paused.append), paused, heard


def test_an_event_is_told_as_json(receivers: list[Receiver]) -> None:
    """The plainest thing every receiver understands."""
    receiver, hook, paused, heard = receive_counted(receivers, 204)
    assert hook.send(EVENT)
    assert receiver.heard == [("/hook?x=1", "application/json", EVENT)]
    assert (heard.count, heard.lines, paused) == (Count(taken=1), [], [])


def test_a_receiver_that_fails_is_asked_again_a_few_times(receivers: list[Receiver]) -> None:
    """One that restarts must not cost an event, one that is broken not a process for ever."""
    receiver, hook, paused = receive(receivers, 503, 429, 200)
    assert hook.send(EVENT)
    assert (len(receiver.heard), paused) == (3, [1.0, 2.0])
    broken, hook, paused, heard = receive_counted(receivers, 500)
    assert not hook.send(EVENT)
    assert (len(broken.heard), paused) == (5, list(WAITS_S))
    assert heard.count == Count(lost=1, trouble="it answered 500")
    assert heard.lines == [
        "The webhook does not take events: it answered 500. They are tried again.",
        "The webhook does not take events: it answered 500. 1 event given up so far.",
    ]


def test_a_receiver_that_refuses_is_not_asked_again(receivers: list[Receiver]) -> None:
    """It would refuse again."""
    receiver, hook, paused = receive(receivers, 404)
    assert not hook.send(EVENT)
    assert (len(receiver.heard), paused) == (1, [])


def test_a_redirect_is_not_followed(receivers: list[Receiver]) -> None:
    """The address was checked; where it points to was not."""
    receiver, hook, _ = receive(receivers, 302)
    assert not hook.send(EVENT)
    assert len(receiver.heard) == 1


def test_nobody_there_is_given_up_on(receivers: list[Receiver]) -> None:
    """And said to be so."""
    receiver, hook, paused, heard = receive_counted(receivers, 200)
    receivers.remove(receiver)
    receiver.close()
    assert not hook.send(EVENT)
    assert paused == list(WAITS_S)
    assert heard.count.trouble == "it cannot be reached (Connection refused)"


def test_a_proxy_of_the_environment_is_not_told_what_is_for_this_machine(
    receivers: list[Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`http_proxy` is set for the world outside."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    receiver, hook, _ = receive(receivers, 200)
    assert hook.send(EVENT)
    assert len(receiver.heard) == 1


@pytest.mark.size("test")
def test_the_oldest_events_give_way_where_too_many_wait(receivers: list[Receiver]) -> None:
    """A receiver that is gone for a night must not fill memory; who tells it never waits."""
    receiver, hook, _, heard = receive_counted(receivers, 200)
    for number in range(MOST_WAITING + 5):
        hook.put({"id": number})
    assert heard.count == Count(lost=5)
    assert heard.lines == ["The webhook takes events again. 1 event given up so far."]
    hook.start()
    while heard.count.taken < MOST_WAITING:
        threading.Event().wait(0.02)
    assert receiver.heard[0] == ("/hook?x=1", "application/json", {"id": 5})


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"",
    ],
    ids=["another-protocol", "a-line-too-long", "too-many-headers", "nothing"],
)
def test_an_answer_that_is_none_ends_a_try_and_not_the_telling(answer: bytes) -> None:
    """Whatever listens there by mistake: the thread that tells must live on for the next event."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(len(WAITS_S) + 1):
                taken, _address = listening.accept()
                with taken:
                    taken.recv(65_536)
                    taken.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        heard = Heard()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert not Webhook(url, heard, pause=lambda _length: None).send(EVENT)
    assert (heard.count.taken, heard.count.lost) == (0, 1)
    assert heard.count.trouble.startswith("it cannot be reached")


@pytest.mark.size("test")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_receiver_that_answers_drip_by_drip_is_hung_up_on(scheme: str) -> None:
    """Each byte would begin a socket's limit anew: one receiver would keep all later events for ever."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            for _ in range(len(WAITS_S) + 1):
                try:
                    taken, _address = listening.accept()
                except OSError:  # closed: the last one was tried
                    return
                with taken, contextlib.suppress(OSError):
                    # A record of TLS that says it is long, or a line of headers without an end.
                    taken.sendall(
                        b"\x16\x03\x03\x40\x00\x02" if scheme == "https" else b"HTTP/1.1 200 OK\r\nX: "
                    )
                    while not is_over.wait(0.05):
                        taken.sendall(b"a")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        heard = Heard()
        url = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/"
        assert not Webhook(url, heard, pause=lambda _length: None, limit_s=0.5).send(EVENT)
        is_over.set()
        thread.join(60)
    assert heard.count == Count(lost=1, trouble="it does not answer in time")


def test_what_still_waits_at_the_end_is_given_up_and_said(receivers: list[Receiver]) -> None:
    """Who ends the exporter while a receiver is away must know that it missed something."""
    _, hook, _, heard = receive_counted(receivers, 200)
    for number in range(3):
        hook.put({"id": number})
    hook.end()
    heard.end()
    assert heard.count == Count(lost=3)
    assert len(heard.lines) == 1
