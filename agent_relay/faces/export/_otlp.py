"""Push figures to a collector with OpenTelemetry's own SDK and exporter, in an HTTP session of ours.

The session goes to the address the user wrote and nowhere else: it follows no redirect, reads no `.netrc`,
and each request has one deadline however often a byte comes. Each push is counted here, because the
exporter itself takes a redirect for success.
"""

import logging
import socket
import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from agent_relay import __version__
from agent_relay.faces.export._figures import LatestFigures
from agent_relay.system.net.delivery_report import DeliveryCounter
from agent_relay.system.net.webhook import LATE, Deadline, LookUp, Resolver, ask_system, describe_failure

_LIMIT_S = 10.0
"""Longest time for a request from its beginning to the answer, in seconds, however often a byte comes."""

_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


class DirectSession(requests.Session):
    """Follows no redirect, which would lead past the address's check, and reads no `.netrc`.

    Requests to this machine (`is_near`) do not go to a proxy of the environment either. `note` is called
    after each request with why it failed, empty if it did not.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        *,
        is_near: bool,
        limit_s: float = _LIMIT_S,
        look_up: LookUp = ask_system,
    ) -> None:
        super().__init__()
        self.trust_env = not is_near
        # Somebody's login for that host, else taken from their `.netrc`, is none of ours.
        self.auth = _add_nothing
        self._note = note
        self._limit_s = limit_s
        self._resolver = Resolver(look_up)
        # Each request has a connection of its own, which ends with it.
        self.headers["Connection"] = "close"
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def send(self, request: requests.PreparedRequest, **options: object) -> requests.Response:
        """Send the request; return the answer without its contents.

        Raises requests.RequestException if none came in time.
        """
        with Deadline(self._limit_s, self._resolver) as deadline:
            before = _deadline.set(deadline)
            try:
                answer = super().send(request, **(options | {"stream": True}))
                answer.close()
                if deadline.is_over:  # the library takes the end of a connection for the end of an answer
                    raise requests.ReadTimeout(LATE)
            except (OSError, ValueError) as error:
                self._note(describe_failure(_find_cause(error), is_late=deadline.is_over))
                raise
            finally:
                _deadline.reset(before)
        self._note("" if answer.status_code < HTTPStatus.MULTIPLE_CHOICES else _render(answer))
        return answer

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return `None`: the redirect itself is the answer, which is no success."""
        del resp
        return None


def _render(answer: requests.Response) -> str:
    return f"it answered {answer.status_code}"


def _find_cause(error: Exception) -> Exception:
    """Return the system's error if a library only passed it on, else `error`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TimeoutError):
            return cause
        if isinstance(cause, OSError) and cause.strerror and isinstance(cause.errno, int):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


def _add_nothing(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _Adapter(HTTPAdapter):
    """Makes connections that end with the deadline of their request."""

    def init_poolmanager(self, *arguments: object, **options: object) -> None:
        """Use our connection pools."""
        super().init_poolmanager(*arguments, **options)  # type: ignore[arg-type]
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: object) -> object:
        """Return a proxy's manager that uses our connection pools, too."""
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager


class _Plain(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        deadline = _deadline.get()
        if deadline is None:
            return super()._new_conn()
        limit_s = self.timeout if isinstance(self.timeout, (int, float)) else None
        made = deadline.connect(
            (self._dns_host, self.port or self.default_port), limit_s, self.source_address
        )
        for option in self.socket_options or ():
            made.setsockopt(*option)
        return made


class _Encrypted(_Plain, HTTPSConnection):
    """An encrypted connection, connected as the plain one is."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _Encrypted


_POOLS = {"http": _PlainPool, "https": _EncryptedPool}


_PREFIX = "agent_relay."
_PATH = "/v1/metrics"


def start_otlp(
    newest: LatestFigures, url: str, deliveries: DeliveryCounter, *, interval_s: float
) -> MeterProvider:
    """Push to `url` now and every `interval_s` seconds; `shutdown` the result for a last push.

    Every figure that `newest` has at this call is pushed. An address without a path gets OTLP's own.
    `deliveries` counts the pushes.
    """
    # It logs every try; what people have to know is said by `deliveries`.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    endpoint = url if urlsplit(url).path not in {"", "/"} else f"{url.rstrip('/')}{_PATH}"
    exporter = _CountedExporter(endpoint, deliveries, is_near=url.startswith("http:"))
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=interval_s * 1000)
    # Only what we say: nothing of the machine, its user or the command line.
    resource = Resource({"service.name": "agent-relay", "service.version": __version__})
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter("agent-relay", __version__)
    for figure in newest.get():
        create = (
            meter.create_observable_counter if figure.kind == "counter" else meter.create_observable_gauge
        )
        create(
            f"{_PREFIX}{figure.name}",
            [partial(_observe, newest, figure.name)],
            unit=figure.unit,
            description=figure.about,
        )
    # Whoever wrote a wrong address hears of it now, not after a while.
    threading.Thread(target=provider.force_flush, name="first push", daemon=True).start()
    return provider


class _CountedExporter(MetricExporter):
    """OpenTelemetry's exporter, each push counted: its own result takes a redirect for success."""

    def __init__(self, endpoint: str, deliveries: DeliveryCounter, *, is_near: bool) -> None:
        super().__init__()
        self._deliveries = deliveries
        self._trouble = ""
        session = DirectSession(self._hear, is_near=is_near)
        self._exporter = OTLPMetricExporter(endpoint=endpoint, timeout=10, session=session)

    def _hear(self, trouble: str) -> None:
        self._trouble = trouble
        if trouble:
            self._deliveries.note(trouble=trouble)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **options: object
    ) -> MetricExportResult:
        """Push once, with all tries, and return the result."""
        self._trouble = ""
        result = self._exporter.export(metrics_data, timeout_millis, **options)
        if result is not MetricExportResult.SUCCESS and not self._trouble:
            self._trouble = "the figures could not be sent"
        is_taken = not self._trouble
        self._deliveries.note(taken=is_taken, lost=not is_taken, trouble=self._trouble)
        return MetricExportResult.SUCCESS if is_taken else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Flush the exporter, which buffers nothing."""
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **options: object) -> None:
        """Let no push and no further try begin after this."""
        self._exporter.shutdown(timeout_millis, **options)


def _observe(newest: LatestFigures, name: str, _options: CallbackOptions) -> Iterable[Observation]:
    """Yield the values of one figure when it is to be pushed."""
    for figure in newest.get():
        if figure.name == name:
            for labels, value in figure.values.items():
                yield Observation(value, dict(zip(figure.labels, labels, strict=True)))
