"""What is exported, read by the others' own libraries: a Prometheus client, an OTLP receiver, a webhook."""

import gzip
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tests.faces.cli_run import create_world
from tests.faces.terminals import Terminals
from tests.support.measured import measured

pytestmark = pytest.mark.size("test")

LIMIT_S = 120
PROMPT = "please limit my secret plans"
USAGE = [
    {"type": "session", "at": "2026-11-20T10:00:00Z", "id": "6f1d", "agent": "demo", "cwd": "/x"},
    {"type": "prompt", "at": "2026-11-20T10:00:01Z", "text": PROMPT},
    {"type": "usage", "at": "2026-11-20T10:00:02Z", "input": 1200, "output": 34},
    {"type": "usage", "at": "2026-11-20T10:00:02Z", "input": 5, "model": "/home/ann/secret/llama.gguf"},
    {"type": "done", "at": "2026-11-20T10:00:03Z"},
]


@dataclass
class Receiver:
    """A collector and a webhook on this machine; what they were sent, by path."""

    heard: dict[str, list[bytes]] = field(default_factory=dict)
    port: int = 0

    def serve(self) -> http.server.ThreadingHTTPServer:
        """It listens from now on."""
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.heard.setdefault(self.path, []).append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base's name
                del format, args

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        return server

    def read_points(self) -> dict[tuple[str, str], float]:
        """The newest push, decoded by the official types: value by name and labels."""
        pushed = self.heard.get("/v1/metrics", [])
        request = (
            ExportMetricsServiceRequest.FromString(pushed[-1]) if pushed else ExportMetricsServiceRequest()
        )
        points = {}
        for metric in (
            one for res in request.resource_metrics for sc in res.scope_metrics for one in sc.metrics
        ):
            data = metric.sum if metric.HasField("sum") else metric.gauge
            for point in data.data_points:
                labels = ",".join(sorted(f"{one.key}={one.value.string_value}" for one in point.attributes))
                points[metric.name, labels] = point.as_double or float(point.as_int)
        return points

    def read_events(self) -> list[dict[str, object]]:
        """What the webhook was told."""
        return [json.loads(body) for body in self.heard.get("/hook", [])]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Somebody to push to and to tell."""
    found = Receiver()
    server = found.serve()
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    """A user with two scripted agents, one of which has used something before."""
    found = Terminals(create_world(f"{tmp_path_factory.mktemp('export')}"))
    folder = f"{found.world.home}/agents/demo"
    os.makedirs(folder)
    with open(f"{folder}/6f1d.jsonl", "w", encoding="utf-8") as stream:
        stream.writelines(f"{json.dumps(row)}\n" for row in USAGE)
    yield found
    found.close()


@pytest.fixture(scope="module")
def port(terminals: Terminals, receiver: Receiver) -> Iterator[int]:
    """Where `agent-relay export` serves figures; it pushes and tells as well. Its end is a last push."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = int(probe.getsockname()[1])
    base = f"http://127.0.0.1:{receiver.port}"
    words = ["--prometheus", str(found), "--otlp", base, "--webhook", f"{base}/hook", "--interval", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "export", *words],
        cwd=terminals.world.cwd,
        env=terminals.environ() | measured(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(4)]
    assert told[0] == f"Prometheus: http://127.0.0.1:{found}/metrics\n"
    assert told[3] == "Press Ctrl-C to stop.\n"
    yield found
    pushes = len(receiver.heard["/v1/metrics"])
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
    assert len(receiver.heard["/v1/metrics"]) > pushes
    process.stdout.close()


def ask(port: int, path: str = "/metrics", *, method: str = "GET", host: str = "") -> tuple[int, str]:
    """Status and text of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def scrape(port: int) -> dict[tuple[str, str], float]:
    """Every sample, as Prometheus' own client reads the text: value by name and labels."""
    return {
        (
            sample.name,
            ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(ask(port)[1])
        for sample in family.samples
    }


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    """Returns once `is_so`."""
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.1)


def test_prometheus_and_a_collector_get_the_same_figures(
    terminals: Terminals, port: int, receiver: Receiver
) -> None:
    """A real limit and handoff of scripted agents, read by the official libraries of both."""
    key = ("agent_relay_tokens_total", "agent=demo,kind=input,model=scripted")
    wait_for(lambda: scrape(port).get(key) == 1200, "what was used before to be read")
    found = scrape(port)
    assert found["agent_relay_tokens_total", "agent=demo,kind=output,model=scripted"] == 34
    assert found["agent_relay_tokens_unpriced_total", "agent=demo,model=scripted"] == 1234
    assert found["agent_relay_tokens_total", "agent=demo,kind=input,model=llama.gguf"] == 5
    assert "secret" not in ask(port)[1]
    assert ("agent_relay_cost_usd_total", "agent=demo,model=scripted") not in found
    assert found["agent_relay_daemon_up", ""] == 0
    child = terminals.open("agent", "demo")
    child.expect_exact("ready | demo")
    child.send(f"{PROMPT}\r")
    child.expect_exact("understudy goes on")
    wait_for(lambda: scrape(port).get(("agent_relay_handoffs_total", "agent=understudy")) == 1, "a handoff")
    wait_for(lambda: scrape(port).get(("agent_relay_sessions", "state=ready")) == 1, "the end of its turn")
    found = scrape(port)
    assert found["agent_relay_limits_total", "agent=demo"] == 1
    assert found["agent_relay_failovers_total", "agent=understudy"] == 1
    assert found["agent_relay_failover_seconds_total", "agent=understudy"] > 0
    assert found["agent_relay_agents_resting", "agent=demo,scope=account"] == 1
    assert found["agent_relay_daemon_up", ""] == 1

    def is_pushed() -> bool:
        return receiver.read_points().get(("agent_relay.handoffs", "agent=understudy")) == 1

    wait_for(is_pushed, "a push with the handoff")
    points = receiver.read_points()
    assert points["agent_relay.tokens", "agent=demo,kind=input,model=scripted"] == 1200
    assert points["agent_relay.limits", "agent=demo"] == 1
    assert points["agent_relay.agents_resting", "agent=demo,scope=account"] == 1
    assert points["agent_relay.daemon_up", ""] == 1


def test_a_webhook_is_told_of_it_without_anybodys_words(
    terminals: Terminals, port: int, receiver: Receiver
) -> None:
    """In the order it happened; nothing of what was typed, no path, no screen."""
    if not terminals.opened:
        test_prometheus_and_a_collector_get_the_same_figures(terminals, port, receiver)

    def list_names() -> list[object]:
        return [one["event"] for one in receiver.read_events()]

    wait_for(lambda: "handoff.confirmed" in list_names(), "the handoff is told")
    wanted = ("session.created", "leg.starting", "signal.seen", "handoff.begun", "handoff.confirmed")
    assert [name for name in dict.fromkeys(list_names()) if name in wanted] == list(wanted)
    seen = next(one for one in receiver.read_events() if one["event"] == "signal.seen")
    assert (seen["agent"], seen["kind"], seen["scope"]) == ("demo", "limit", "account")
    assert seen["schema"] == "agent-relay/webhook"
    sent = b"\n".join(body for bodies in receiver.heard.values() for body in bodies).decode(
        "utf-8", "replace"
    )
    assert "secret" not in sent
    assert terminals.world.home not in sent
    assert terminals.world.cwd not in sent
    assert port > 0


def test_scrapes_come_under_our_own_name_only(port: int) -> None:
    """A page elsewhere can have its name point at this machine; nothing can be changed here."""
    assert ask(port, host="evil.example")[0] == 421
    assert ask(port, host=f"localhost:{port}")[0] == 200
    assert ask(port, method="POST")[0] == 405
    assert ask(port, "/")[0] == 404


def test_nothing_is_exported_unless_asked(terminals: Terminals) -> None:
    """And only to where it may be."""
    done = terminals.world.run("export")
    assert done.status == 2
    assert "agent-relay export: no export target given" in done.err
    refused = terminals.world.run("export", "--webhook", "http://hooks.example/")
    assert refused.status == 2
    assert "neither https nor http to this machine" in refused.err
    assert terminals.world.run("export", "--prometheus", "99999").err.splitlines()[0] == (
        "agent-relay export: --prometheus: it must be at most 65535"
    )
    for interval in ("0.2", "0"):
        refused = terminals.world.run("export", "--interval", interval, "--prometheus", "9464")
        assert refused.err.splitlines()[0] == ("agent-relay export: --interval: it must be at least 1")
