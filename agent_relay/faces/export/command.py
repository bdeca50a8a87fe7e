"""`agent-relay export`: figures for Prometheus and OpenTelemetry, events for a webhook, while it runs."""

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC
from functools import partial
from types import FrameType
from typing import Annotated

import msgspec
import typer

from agent_relay.domain.documents.config import ExportConfig, check_address
from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.domain.protocol.watch_output import EventTold
from agent_relay.faces.cli.dispatch import missing_extra
from agent_relay.faces.cli.options import UsageError
from agent_relay.faces.export._figures import ExportLoop, ExportReader, build_hook_event
from agent_relay.faces.render.output import print_json, print_lines, warn
from agent_relay.faces.watch.watcher import WatchedSessions, Watcher
from agent_relay.system.config_file import read_user_config
from agent_relay.system.disk.folders import get_folders
from agent_relay.system.net.delivery_report import DeliveryCounter, Receiver
from agent_relay.system.net.webhook import Webhook

_WEBHOOK = Receiver("webhook", "The webhook", "event", "events")
_COLLECTOR = Receiver("otlp", "The collector", "push", "pushes")
_LAST_PUSH_MS = 1000


def export(
    *,
    prometheus: Annotated[
        int | None, typer.Option("--prometheus", help="Serve figures at this port of 127.0.0.1.")
    ] = None,
    otlp: Annotated[str, typer.Option("--otlp", help="Push figures to this OpenTelemetry collector.")] = "",
    webhook: Annotated[str, typer.Option("--webhook", help="Send events to this address.")] = "",
    interval: Annotated[
        float | None, typer.Option("--interval", help="Seconds between two readings.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the destinations as JSON: {prometheus, otlp, webhook}.")
    ] = False,
) -> int:
    """Figures of all your sessions for Prometheus and OpenTelemetry, and events for a webhook.

    Runs until it is ended; without options it does what [export] in config.toml says. Nothing is exported
    otherwise, and never what people or agents wrote. Names: docs/exporters.md.
    """
    wanted = _choose(prometheus, otlp, webhook, interval)
    folders = get_folders()
    watcher = Watcher(folders, WatchedSessions(), zone=UTC)
    watcher.connect()
    loop = ExportLoop(watcher, ExportReader(folders, os.environ), interval_s=wanted.interval_s, warn=warn)
    before = signal.signal(signal.SIGTERM, _end)
    try:
        return _export(loop, wanted, as_json=as_json)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except _Ended:
        return 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
        watcher.close()


def _choose(prometheus: int | None, otlp: str, webhook: str, interval: float | None) -> ExportConfig:
    """Return the configuration with the options over it. Raise UsageError if there is nothing to do."""
    config = read_user_config(get_folders().config).export
    given = {"prometheus_port": prometheus, "otlp": otlp, "webhook": webhook, "interval_s": interval}
    try:
        for address in (otlp, webhook):
            if address:
                check_address(address)
        chosen = ExportConfig.parse(
            msgspec.structs.asdict(config)
            | {name: value for name, value in given.items() if value not in {None, ""}}
        )
    except MistakeError as error:
        option = error.key.partition("_")[0]
        raise UsageError(f"--{option}: {error.message}", command="export") from None
    except ValueError as error:
        raise UsageError(f"{error}", command="export") from None
    if not (chosen.prometheus_port or chosen.otlp or chosen.webhook):
        raise UsageError(
            "no export target given",
            hint="Give --prometheus PORT, --otlp URL or --webhook URL, or add [export] to config.toml",
            command="export",
        )
    return chosen


def _export(loop: ExportLoop, wanted: ExportConfig, *, as_json: bool) -> int:
    """Export until a Unix signal ends it; then push figures a last time."""
    loop.read()
    hook = Webhook(wanted.webhook, _count(loop, _WEBHOOK)) if wanted.webhook else None
    try:
        port, stop_pushing = _serve_figures(loop, wanted)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "export") from error
    if hook is not None:
        hook.start()
    _tell(wanted, port, as_json=as_json)

    def tell(event: EventTold) -> None:
        body = build_hook_event(event)
        if hook is not None and body is not None:
            hook.put(body)

    try:
        loop.run(tell)
    finally:
        stop_pushing()
        if hook is not None:
            hook.end()
        for deliveries in loop.newest.deliveries:
            deliveries.end()
    return 0


def _tell(wanted: ExportConfig, port: int, *, as_json: bool) -> None:
    """Print where figures and events go, and how it ends; of an address nothing after its `?`."""
    places = {
        "prometheus": f"http://127.0.0.1:{port}/metrics" if port else "",
        "otlp": wanted.otlp.partition("?")[0],
        "webhook": wanted.webhook.partition("?")[0],
    }
    if as_json:
        print_json(places)
    else:
        titles = {"prometheus": "Prometheus", "otlp": "OpenTelemetry", "webhook": "Webhook"}
        print_lines(*(f"{titles[name]}: {place}" for name, place in places.items() if place))
        print_lines("Press Ctrl-C to stop.")
    sys.stdout.flush()


def _serve_figures(loop: ExportLoop, wanted: ExportConfig) -> tuple[int, Callable[[], None]]:
    """Serve and push figures as wanted; return the port (0 for none) and what ends the pushing."""
    port = 0
    if wanted.prometheus_port:
        from agent_relay.faces.export._prometheus import start_prometheus

        port = start_prometheus(loop.newest, wanted.prometheus_port)
    if not wanted.otlp:
        return port, lambda: None
    from agent_relay.faces.export._otlp import start_otlp

    pushed = _count(loop, _COLLECTOR)
    provider = start_otlp(loop.newest, wanted.otlp, pushed, interval_s=wanted.interval_s)
    return port, partial(provider.shutdown, timeout_millis=_LAST_PUSH_MS)


def _count(loop: ExportLoop, receiver: Receiver) -> DeliveryCounter:
    """Return what counts the receiver's deliveries from now on, and warns if it does not take them."""
    deliveries = DeliveryCounter(receiver, warn)
    loop.newest.count(deliveries)
    return deliveries


class _Ended(Exception):  # noqa: N818 - no error: somebody asked for the end
    """SIGTERM has come."""


def _end(_number: int, _frame: FrameType | None) -> None:
    raise _Ended
