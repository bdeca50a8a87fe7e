"""What is exported, read by the others' own libraries: a Prometheus client, an OTLP receiver, a webhook."""

import json
import os
import signal
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tests.faces.export.exporter import Listener, ask, export, find_port, listen, wait_started
from tests.support.at_work import WorkingWorld, working_world
from tests.support.legs import wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("test")

PROMPT = "run out of my secret plans"
USAGE = [
    {"type": "session", "at": "2026-11-20T10:00:00Z", "id": "6f1d", "agent": "demo", "cwd": "/x"},
    {"type": "prompt", "at": "2026-11-20T10:00:01Z", "text": PROMPT},
    {"type": "usage", "at": "2026-11-20T10:00:02Z", "input": 1200, "output": 34},
    {"type": "usage", "at": "2026-11-20T10:00:02Z", "input": 5, "model": "/home/ann/secret/llama.gguf"},
    {"type": "done", "at": "2026-11-20T10:00:03Z"},
]


def read_points(receiver: Listener) -> dict[tuple[str, str], float]:
    """The newest push, decoded by the official types: value by name and labels."""
    pushed = receiver.heard.get("/v1/metrics", [])
    request = ExportMetricsServiceRequest.FromString(pushed[-1]) if pushed else ExportMetricsServiceRequest()
    points = {}
    for metric in (one for res in request.resource_metrics for sc in res.scope_metrics for one in sc.metrics):
        data = metric.sum if metric.HasField("sum") else metric.gauge
        for point in data.data_points:
            labels = ",".join(sorted(f"{one.key}={one.value.string_value}" for one in point.attributes))
            points[metric.name, labels] = point.as_double or float(point.as_int)
    return points


def read_events(receiver: Listener) -> list[dict[str, object]]:
    """What the webhook was told."""
    return [json.loads(body) for body in receiver.heard.get("/hook", [])]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Listener]:
    """Somebody to push to and to tell."""
    with listen() as found:
        yield found


@pytest.fixture(scope="module")
def world() -> Iterator[WorkingWorld]:
    """A user with two scripted agents, one of which has used something before."""
    with working_world(starts=False) as made:
        folder = f"{made.home}/.demo-agent/demo"
        os.makedirs(folder)
        with open(f"{folder}/6f1d.jsonl", "w", encoding="utf-8") as stream:
            stream.writelines(f"{json.dumps(row)}\n" for row in USAGE)
        yield made


@pytest.fixture(scope="module")
def port(world: WorkingWorld, receiver: Listener) -> Iterator[int]:
    """Where `agent-relay export` serves figures; it pushes and tells as well. Its end is a last push."""
    found, base = find_port(), f"http://127.0.0.1:{receiver.server_port}"
    words = ["--prometheus", str(found), "--otlp", base, "--webhook", f"{base}/hook", "--interval", "1"]
    with export(world.project, world.environ, *words) as command:
        told = wait_started(command)
        assert (told[0], len(told)) == (f"Prometheus: http://127.0.0.1:{found}/metrics\n", 4)
        yield found
        pushes = len(receiver.heard["/v1/metrics"])
        assert command.end(signal.SIGTERM) == 143
        assert len(receiver.heard["/v1/metrics"]) > pushes


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


def test_prometheus_and_a_collector_get_the_same_figures(
    world: WorkingWorld, port: int, receiver: Listener
) -> None:
    """A real limit and handoff of scripted agents, read by the official libraries of both."""
    key = ("agent_relay_tokens_total", "agent=demo,kind=input,model=scripted")
    wait_until(lambda: scrape(port).get(key) == 1200, "what was used before to be read")
    found = scrape(port)
    assert found["agent_relay_tokens_total", "agent=demo,kind=output,model=scripted"] == 34
    assert found["agent_relay_tokens_unpriced_total", "agent=demo,model=scripted"] == 1234
    assert found["agent_relay_tokens_total", "agent=demo,kind=input,model=llama.gguf"] == 5
    assert "secret" not in ask(port)[1]
    assert ("agent_relay_cost_usd_total", "agent=demo,model=scripted") not in found
    assert found["agent_relay_daemon_up", ""] == 0
    session = world.begin()
    world.say(session, PROMPT)
    world.wait_handed_over(session)
    wait_until(lambda: scrape(port).get(("agent_relay_handoffs_total", "agent=understudy")) == 1, "a handoff")
    wait_until(lambda: scrape(port).get(("agent_relay_sessions", "state=ready")) == 1, "the end of its turn")
    found = scrape(port)
    assert found["agent_relay_limits_total", "agent=demo"] == 1
    assert found["agent_relay_failovers_total", "agent=understudy"] == 1
    assert found["agent_relay_failover_seconds_total", "agent=understudy"] > 0
    assert found["agent_relay_agents_resting", "agent=demo,scope=account"] == 1
    assert found["agent_relay_daemon_up", ""] == 1

    def is_pushed() -> bool:
        return read_points(receiver).get(("agent_relay.handoffs", "agent=understudy")) == 1

    wait_until(is_pushed, "a push with the handoff")
    points = read_points(receiver)
    assert points["agent_relay.tokens", "agent=demo,kind=input,model=scripted"] == 1200
    assert points["agent_relay.limits", "agent=demo"] == 1
    assert points["agent_relay.agents_resting", "agent=demo,scope=account"] == 1
    assert points["agent_relay.daemon_up", ""] == 1


def test_a_webhook_is_told_of_it_without_anybodys_words(
    world: WorkingWorld, port: int, receiver: Listener
) -> None:
    """In the order it happened; nothing of what was typed, no path, no screen."""
    if not world.daemons:
        test_prometheus_and_a_collector_get_the_same_figures(world, port, receiver)

    def list_names() -> list[object]:
        return [one["event"] for one in read_events(receiver)]

    wait_until(lambda: "handoff.confirmed" in list_names(), "the handoff is told")
    wanted = ("session.created", "leg.starting", "signal.seen", "handoff.begun", "handoff.confirmed")
    assert [name for name in dict.fromkeys(list_names()) if name in wanted] == list(wanted)
    seen = next(one for one in read_events(receiver) if one["event"] == "signal.seen")
    assert (seen["agent"], seen["kind"], seen["scope"]) == ("demo", "limit", "account")
    assert seen["schema"] == "agent-relay/webhook"
    sent = b"\n".join(body for bodies in receiver.heard.values() for body in bodies).decode(
        "utf-8", "replace"
    )
    assert "secret" not in sent
    assert world.home not in sent
    assert world.project not in sent
    assert port > 0


def test_scrapes_come_under_our_own_name_only(port: int) -> None:
    """A page elsewhere can have its name point at this machine; nothing can be changed here."""
    assert ask(port, host="evil.example")[0] == 421
    assert ask(port, host=f"localhost:{port}")[0] == 200
    assert ask(port, method="POST")[0] == 405
    assert ask(port, "/")[0] == 404


def test_nothing_is_exported_unless_asked(world: WorkingWorld) -> None:
    """And only to where it may be."""
    done = run(world, "export")
    assert done.status == 2
    assert "agent-relay export: no export target given" in done.err
    refused = run(world, "export", "--webhook", "http://hooks.example/")
    assert refused.status == 2
    assert "neither https nor http to this machine" in refused.err
    assert run(world, "export", "--prometheus", "99999").err.splitlines()[0] == (
        "agent-relay export: --prometheus: it must be at most 65535"
    )
    for interval in ("0.2", "0"):
        refused = run(world, "export", "--interval", interval, "--prometheus", "9464")
        assert refused.err.splitlines()[0] == ("agent-relay export: --interval: it must be at least 1")
