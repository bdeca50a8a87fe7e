"""Figures pushed to a collector by OpenTelemetry's own SDK and exporter."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from agent_relay import __version__
from agent_relay.client.export_loop import Newest
from agent_relay.faces.cli.export.session import DirectSession
from agent_relay.logic.exporting.figures import Figure

_PREFIX = "agent_relay."
_PATH = "/v1/metrics"


def start_otlp(newest: Newest, url: str, *, interval_s: float) -> MeterProvider:
    """Pushes to `url` every `interval_s` seconds from now on; `shutdown` it for a last push.

    Every figure of `newest` there is by then is pushed. An address without a path gets OTLP's own.
    """
    endpoint = url if urlsplit(url).path not in {"", "/"} else f"{url.rstrip('/')}{_PATH}"
    session = DirectSession(is_near=url.startswith("http:"))
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(endpoint=endpoint, timeout=10, session=session),
        export_interval_millis=interval_s * 1000,
    )
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
    return provider


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
