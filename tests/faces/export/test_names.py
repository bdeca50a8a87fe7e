"""What of names leaves this machine, by the shapes they have in the world."""

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.protocol.watch_output import LiveSession, RestingAgent, WindowUsed
from agent_relay.faces.export._figures import build_figures, build_hook_event, label, shorten_path
from agent_relay.faces.watch.view import View
from agent_relay.transcripts.usage_records import AnswerUsage
from agent_relay.usage.totals import Bill, MetricsRow
from tests.faces.watch.lives import BEGINNING, follow, look_at

PATHS = (
    "/home/ann/models/llama.gguf", "~/models/llama.gguf", "./ann/llama.gguf", "../ann/llama.gguf",
    "home/ann/llama.gguf", "C:\\Users\\ann\\llama.gguf", "\\\\nas\\ann\\llama.gguf",
    "C:/Users/ann/llama.gguf",
    "file:///home/ann/llama.gguf", "ollama:/home/ann/llama.gguf", "%2Fhome%2Fann%2Fllama.gguf",
    "http://ann:key@10.0.0.5:8080/v1/llama.gguf", "ann@host:/models/llama.gguf",
)  # fmt: skip


def test_of_a_model_that_is_a_file_only_the_files_name_is_told() -> None:
    """Local models are named by where they lie; that names people, machines and projects."""
    assert {path: label(shorten_path(path)) for path in PATHS} == dict.fromkeys(PATHS, "llama.gguf")


def test_a_model_is_told_by_a_name_of_the_shape_models_have() -> None:
    """Anything else may be anybody's words."""
    told = {
        "claude-opus-4-8": "claude-opus-4-8",
        "gpt-5.1-codex (high)": "gpt-5.1-codex (high)",
        "qwen2.5-coder:7b": "qwen2.5-coder:7b",
        "openrouter/anthropic/claude-4": "claude-4",
        "hf.co/maker/Llama-3:Q4_K_M": "Llama-3:Q4_K_M",
        "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.claude": "eu.claude",
        "x" * 81: "x" * 80,
        **dict.fromkeys(("", "/home/ann/", "http://10.0.0.5:8080"), "unknown"),
        **dict.fromkeys(
            ("<synthetic>", "a model; it is Ann's", "ann@example.org", "~ann", "one\ntwo"), "other"
        ),
    }
    assert {name: label(shorten_path(name)) for name in told} == told


@pytest.mark.parametrize("path", PATHS)
def test_nothing_of_a_path_leaves_wherever_it_stands(path: str) -> None:
    """Figures are what Prometheus and OpenTelemetry get, an event's body is what a webhook gets."""
    bill = Bill()
    bill.add(AnswerUsage("k", 1, "n", path, 1), lambda _model, _at: ())
    live = LiveSession("S", 5, "L1", windows=(WindowUsed(name=path, used_percent=5, resets_at=""),))
    seen = look_at(*BEGINNING, live=live)
    rest = RestingAgent(agent=path, model=path, scope=path, until="")
    row = MetricsRow(path, bill)
    figures = build_figures([row, MetricsRow("ada", bill)], {"ada": [row]}, View((seen,), (rest,)))
    labels = {text for figure in figures for values in figure.values for text in values}
    told = follow(
        *BEGINNING,
        words.SignalSeen("L1", path, path, path, "hook", path, decides=True, until=path, model=path),
        words.LegEnded("L1", path),
    ).told[4:]
    bodies = [body for event in told if (body := build_hook_event(event)) is not None]
    assert len(bodies) == 2
    assert bodies[0]["model"] == "llama.gguf"
    values = [str(value) for body in bodies for name, value in body.items() if name != "schema"]
    sent = f"{sorted(labels)} {values}".lower().replace("\\\\", "\\")
    for private in ("ann", "home", "models", "users", "nas", "/", "\\", "%2f", "10.0.0.5", "key"):
        assert private not in sent


def test_a_session_whose_damaged_journal_gives_it_a_path_for_a_name_is_not_told_of() -> None:
    """Its name goes out with every event."""
    told = follow(*BEGINNING).told[0]
    assert build_hook_event(told) is not None
    assert build_hook_event(told.model_copy(update={"session": "/home/ann"})) is None
