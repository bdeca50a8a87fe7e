"""Figures pushed to a collector by OpenTelemetry's own SDK and exporter."""

import logging
import threading
from collections.abc import Iterable
from urllib.parse import urlsplit

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

from agent_relay import __version__
from agent_relay.client.export_loop import Newest
from agent_relay.faces.cli.export.session import DirectSession
from agent_relay.logic.exporting.figure import Figure
from agent_relay.system.deliveries import Deliveries

_PREFIX = "agent_relay."
_PATH = "/v1/metrics"


def start_otlp(newest: Newest, url: str, deliveries: Deliveries, *, interval_s: float) -> MeterProvider:
    """Pushes to `url` now and every `interval_s` seconds from now on; `shutdown` it for a last push.

    Every figure of `newest` there is by then is pushed. An address without a path gets OTLP's own.
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
            [_Observer(newest, figure.name)],
            unit=figure.unit,
            description=figure.about,
        )
    # Whoever wrote a wrong address hears of it now, not after a while.
    threading.Thread(target=provider.force_flush, name="first push", daemon=True).start()
    return provider


class _CountedExporter(MetricExporter):
    """OpenTelemetry's exporter, each push counted: its own answer takes a redirect for success."""

    def __init__(self, endpoint: str, deliveries: Deliveries, *, is_near: bool) -> None:
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
        """What became of one push with all its tries."""
        self._trouble = ""
        result = self._exporter.export(metrics_data, timeout_millis, **options)
        if result is not MetricExportResult.SUCCESS and not self._trouble:
            self._trouble = "the figures could not be sent"
        is_taken = not self._trouble
        self._deliveries.note(taken=is_taken, lost=not is_taken, trouble=self._trouble)
        return MetricExportResult.SUCCESS if is_taken else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is kept."""
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **options: object) -> None:
        """No push and no further try begins after this."""
        self._exporter.shutdown(timeout_millis, **options)


class _Observer:
    """Reads one figure when it is to be pushed."""

    def __init__(self, newest: Newest, name: str) -> None:
        self._newest = newest
        self._name = name

    def __call__(self, _options: CallbackOptions) -> Iterable[Observation]:
        for figure in self._newest.get():
            if figure.name == self._name:
                yield from _observe(figure)


def _observe(figure: Figure) -> Iterable[Observation]:
    for labels, value in figure.values.items():
        yield Observation(value, dict(zip(figure.labels, labels, strict=True)))
