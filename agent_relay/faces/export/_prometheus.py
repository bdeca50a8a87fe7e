"""Serve figures to Prometheus on loopback: its own library makes the text, and a scrape reads no records."""

import socketserver
import threading
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.watch_output import Figure
from agent_relay.faces.export._figures import LatestFigures

if TYPE_CHECKING:
    import socket
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    _Asked = socket.socket | tuple[bytes, socket.socket]

HOST = "127.0.0.1"
_PREFIX = "agent_relay_"
_REQUEST_LIMIT_S = 10
_MOST_AT_ONCE = 16


class _Figures(Collector):
    """The newest figures in Prometheus' own types."""

    def __init__(self, newest: LatestFigures) -> None:
        self._newest = newest

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield a family for each figure that has a value."""
        for figure in self._newest.get():
            if figure.values:
                yield _build_family(figure)


def _build_family(figure: Figure) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if figure.kind == "counter" else GaugeMetricFamily
    family = kind(f"{_PREFIX}{figure.name}", figure.about, labels=figure.labels)
    for labels, value in figure.values.items():
        family.add_metric(labels, value)
    return family


def start_prometheus(newest: LatestFigures, port: int) -> int:
    """Answer `/metrics` at 127.0.0.1 on a thread from now on; return the port.

    Raises RelayError if the port cannot be used.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(newest))
    try:
        app = _guard(make_wsgi_app(registry))
        server = make_server(HOST, port, app, server_class=_Server, handler_class=_Silent)
    except (OSError, OverflowError) as error:
        raise RelayError(
            f"cannot listen on port {port} of {HOST}: {getattr(error, 'strerror', None) or error}",
            hint="Choose another one with --prometheus",
        ) from error
    threading.Thread(target=server.serve_forever, name="prometheus", daemon=True).start()
    return server.server_port


def _guard(app: "WSGIApplication") -> "WSGIApplication":
    """Answer scrapes under our own name only: a page elsewhere can have its name point here."""

    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        hosts = {f"{name}:{environ['SERVER_PORT']}" for name in (HOST, "localhost")}
        if str(environ.get("HTTP_HOST", "")).lower() not in hosts:
            return _say(start_response, HTTPStatus.MISDIRECTED_REQUEST)
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _say(start_response, HTTPStatus.METHOD_NOT_ALLOWED)
        if environ["PATH_INFO"] != "/metrics":
            return _say(start_response, HTTPStatus.NOT_FOUND)
        return app(environ, start_response)

    return answer


def _say(start_response: "StartResponse", status: HTTPStatus) -> Iterable[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{status.phrase}\n".encode()]


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """Answers each scrape on a thread, a few at once and none for long; one too many is refused.

    Any program on this machine may connect, and must not use up threads and descriptors of this one.
    """

    daemon_threads = True
    request_queue_size = 128

    def server_activate(self) -> None:
        """Listen, with every place free."""
        self._places = threading.BoundedSemaphore(_MOST_AT_ONCE)
        super().server_activate()

    def process_request(self, request: "_Asked", client_address: object) -> None:
        """Answer on a thread if one is free, else close the connection."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: "_Asked", client_address: object) -> None:
        """Answer; close the connection at the latest after the time a whole request may take."""
        end = threading.Timer(_REQUEST_LIMIT_S, self.shutdown_request, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._places.release()

    def handle_error(self, request: "_Asked", client_address: object) -> None:
        """Do nothing: a client that hung up or was too slow does not concern the user."""
        del request, client_address


class _Silent(WSGIRequestHandler):
    """Logs no scrapes, and gives up on slow clients."""

    timeout = _REQUEST_LIMIT_S

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name for it
        """Log nothing."""
