"""A name server that does not answer keeps nobody beyond the deadline, and costs one thread."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from agent_relay.system.net.delivery_report import Count, DeliveryCounter
from agent_relay.system.net.delivery_report import Receiver as Named
from agent_relay.system.net.webhook import WAITS_S, Address, Deadline, Resolver, Webhook, ask_system

LIMIT_S = 60
EVENT = {"event": "leg.asking", "id": "S:1"}


class NameServer:
    """Knows every host as this machine, once it `answers`; until then whoever asks it hangs."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked: list[str] = []

    def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Where the host is."""
        self.asked.append(host)
        assert self.answers.wait(LIMIT_S * 3)
        return ask_system("127.0.0.1", port)


@pytest.fixture
def names() -> Iterator[NameServer]:
    """One that does not answer; at the end nobody hangs any more."""
    made = NameServer()
    yield made
    made.answers.set()


@contextmanager
def receiver() -> Iterator[int]:
    """The port of one on this machine that takes all it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.recv(65_536)
                taken.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        # Closed under it, it would fail, and with it whichever test is at work by then.
        thread.join(LIMIT_S)


def count_for(lines: list[str]) -> DeliveryCounter:
    return DeliveryCounter(Named("webhook", "The webhook", "event", "events"), lines.append)


def send(hook: Webhook) -> bool:
    """Whether an event was taken; fails where whoever tells it is held."""
    ends: list[bool] = []
    thread = threading.Thread(target=lambda: ends.append(hook.send(EVENT)), daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    return ends[0]


def test_a_webhook_whose_name_nobody_answers_for_is_given_up(names: NameServer) -> None:
    """The system asks such a server for up to a minute and more, for each event again."""
    deliveries = count_for([])
    hook = Webhook(
        "http://hook.example/", deliveries, pause=lambda _length: None, limit_s=0.1, look_up=names.look_up
    )
    assert not send(hook)
    assert deliveries.count == Count(lost=1, trouble="it does not answer in time")
    assert names.asked == ["hook.example"]


@pytest.mark.size("test")
def test_once_the_name_server_answers_what_comes_is_taken(names: NameServer) -> None:
    """The thread that hung is not in the way of the next try."""
    deliveries = count_for([])
    with receiver() as port:
        paused: list[float] = []

        def pause(length: float) -> None:
            paused.append(length)
            names.answers.set()

        hook = Webhook(
            f"http://hook.example:{port}/", deliveries, pause=pause, limit_s=5, look_up=names.look_up
        )
        assert send(hook)
    assert paused == list(WAITS_S[:1])
    assert deliveries.count == Count(taken=1)


def test_two_questions_are_never_under_way_at_once(names: NameServer) -> None:
    """Who asks for another host waits for the first answer, then for their own."""
    resolver = Resolver(names.look_up)
    with pytest.raises(TimeoutError):
        resolver.find("one.example", 1, 0.05)
    with pytest.raises(TimeoutError):
        resolver.find("two.example", 2, 0.05)
    assert names.asked == ["one.example"]
    names.answers.set()
    assert [found[4] for found in resolver.find("two.example", 2, LIMIT_S)] == [("127.0.0.1", 2)]
    assert names.asked == ["one.example", "two.example"]


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label")])
def test_why_a_name_is_not_known_is_heard(error: Exception) -> None:
    """By whoever waits, not on the terminal by a thread that died."""

    def refuse(host: str, port: int) -> Sequence[Address]:
        del host, port
        raise error

    resolver = Resolver(refuse)
    for _ in range(2):
        with pytest.raises(type(error)):
            resolver.find("one.example", 1, LIMIT_S)


def test_the_next_place_of_a_host_is_tried_where_one_refuses() -> None:
    """A host has an address of either kind, and listens on one."""
    with receiver() as port, socket.create_server(("127.0.0.1", 0)) as gone:
        refused = gone.getsockname()[1]
        gone.close()
        places = [*ask_system("127.0.0.1", refused), *ask_system("127.0.0.1", port)]
        with Deadline(LIMIT_S, Resolver(lambda _host, _port: places)) as deadline:
            made = deadline.connect(("hook.example", 1), 3.0, ("127.0.0.1", 0))
            assert (made.getpeername()[1], made.gettimeout()) == (port, 3.0)
            made.close()


@pytest.mark.parametrize(("places", "error"), [([], OSError), ([(77, 1, 0, "", ("127.0.0.1", 1))], OSError)])
def test_a_host_without_a_place_is_said_to_be_one(places: list[Address], error: type[OSError]) -> None:
    """A kind of network this machine has not is as good as none."""
    with Deadline(LIMIT_S, Resolver(lambda _host, _port: places)) as deadline, pytest.raises(error):
        deadline.connect(("hook.example", 1), 3.0)


def test_places_that_do_not_answer_share_one_deadline() -> None:
    """A hundred addresses of a quarter of a second each are many seconds."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        address = listening.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            # Whom nobody takes fills the queue; the system drops who comes then.
            one.setblocking(False)
            one.connect_ex(address)
        places = ask_system(*address) * 400
        ends: list[str] = []

        def reach() -> None:
            with Deadline(0.25, Resolver(lambda _host, _port: places)) as deadline:
                try:
                    deadline.connect(("hook.example", 1), 0.25)
                except OSError as error:
                    ends.append(type(error).__name__)

        thread = threading.Thread(target=reach, daemon=True)
        thread.start()
        thread.join(LIMIT_S)
        for one in waiting:
            one.close()
    assert ends == ["TimeoutError"]


@pytest.mark.filterwarnings("ignore:Exception in thread resolve:pytest.PytestUnhandledThreadExceptionWarning")
def test_a_look_up_that_ends_in_an_odd_way_is_asked_anew() -> None:
    """An answer that never came would keep every later event waiting until the daemon ends."""
    asked: list[str] = []

    def look_up(host: str, port: int) -> Sequence[Address]:
        asked.append(host)
        if len(asked) == 1:
            raise SystemExit
        return ask_system("127.0.0.1", port)

    resolver = Resolver(look_up)
    with pytest.raises(OSError, match="the look-up failed"):
        resolver.find("hook.example", 80, LIMIT_S)
    for thread in threading.enumerate():
        if thread.name == "resolve":
            thread.join(LIMIT_S)
    assert resolver.find("hook.example", 80, LIMIT_S)[0][4][:2] == ("127.0.0.1", 80)
