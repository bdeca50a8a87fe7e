"""What the four agents' headless streams say of limits: every true one, and none that heals by itself."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.values import AgentName
from agent_relay.session.turns.output import TurnVerdict

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
LIMIT = "You\u2019ve hit your usage limit. Try again at 12:41 PM."
BUSY = "Reconnecting... 1/5 (rate limit exceeded: Rate limit reached for gpt-5.5. Please try again in 3.5s.)"
LONG = BUSY.replace("3.5s", "3600s")
REFUSED = "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"
DAILY = "[API Error: You have exhausted your daily quota on this model.]\nPlease wait and try again later."

# What 2.1.197 prints for a prompt whose hook ended with status 2, and ends with status 0.
BLOCKED = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "num_turns": 0,
    "result": "UserPromptSubmit operation blocked by hook:\n[hook]: No such file or directory",
    "total_cost_usd": 0,
    "usage": {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0},
}
CODEX_WORDS = {"type": "item.completed", "item": {"type": "agent_message", "text": "Yes."}}
GEMINI_WORDS = {"type": "message", "role": "assistant", "content": "Yes."}
OPENCODE_WORDS = {"type": "text", "part": {"text": "Yes."}}


def claude_words(text: str) -> dict[str, object]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


def claude_error(text: str, kind: str = "rate_limit") -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "error": kind, "message": {"model": "<synthetic>", "content": content}}


def opencode_error(text: str, status: int) -> dict[str, object]:
    return {"type": "error", "error": {"name": "APIError", "data": {"message": text, "statusCode": status}}}


@pytest.mark.parametrize(
    ("agent", "record", "found"),
    [
        (
            "claude",
            claude_error("You've hit your session limit · resets 12:32pm (UTC)"),
            ("limit", "account", True),
        ),
        (
            "claude",
            claude_error("You've hit your Opus limit · resets 12:32pm (UTC)"),
            ("limit", "model", True),
        ),
        ("claude", claude_error("Credit balance is too low", "billing_error"), ("limit", "billing", True)),
        (
            "claude",
            claude_error("API Error: Server is temporarily limiting requests (not your usage limit)"),
            ("failure", "transient", False),
        ),
        ("claude", {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}}, None),
        ("claude", {"type": "system", "subtype": "api_retry", "error": "rate_limit"}, None),
        ("codex", {"type": "turn.failed", "error": {"message": LIMIT}}, ("limit", "account", True)),
        ("codex", {"type": "error", "message": LIMIT}, None),
        ("codex", {"type": "error", "message": BUSY}, ("retry", "transient", False)),
        ("codex", {"type": "error", "message": LONG}, ("silent-limit", "account", True)),
        ("codex", {"type": "error", "message": REFUSED}, ("retry", "transient", False)),
        (
            "gemini",
            {"type": "result", "status": "error", "error": {"message": DAILY}},
            ("limit", "model", True),
        ),
        ("gemini", {"type": "message", "role": "assistant", "content": DAILY}, None),
        ("opencode", opencode_error("Too many requests", 429), ("limit", "account", True)),
        ("opencode", opencode_error("Pay first", 402), ("limit", "billing", True)),
        ("opencode", opencode_error("Incorrect API key provided", 401), ("failure", "auth", True)),
        ("opencode", opencode_error("Bad gateway", 502), ("failure", "transient", True)),
        ("opencode", {"type": "text", "part": {"text": "You exceeded your current quota"}}, None),
    ],
)
def test_a_record_of_a_stream_is_what_its_agent_means(
    agent: str, record: dict[str, object], found: tuple[str, str, bool] | None
) -> None:
    """A script has nobody who would see the difference."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in"))
    detector = Detector(rules, agent=AgentName(agent), started_at=NOW, zone=UTC)
    signals = detector.hear(Record(Source.STREAM, record), now=NOW)
    said = [(signal.kind.value, signal.scope.value, signal.decides) for signal in signals]
    assert said == ([] if found is None else [found])


def hear_codex(*told: tuple[float, dict[str, object]]) -> Detector:
    """A detector that heard these records of a stream, each so many seconds after the start."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), "codex"), origin="built-in"))
    detector = Detector(rules, agent=AgentName("codex"), started_at=NOW, zone=UTC)
    for seconds, record in told:
        at = NOW + timedelta(seconds=seconds)
        assert not [one for one in detector.hear(Record(Source.STREAM, record), now=at) if one.decides]
    return detector


def test_a_wait_that_codex_does_not_name_is_a_limit_once_it_lasts() -> None:
    """It obeys an hour's Retry-After and prints one line about it; the next would come in an hour."""
    detector = hear_codex((1, {"type": "turn.started"}), (2, {"type": "error", "message": REFUSED}))
    (found,) = detector.tick(now=NOW + timedelta(seconds=302))
    assert (found.kind.value, found.scope.value, found.decides) == ("silent-limit", "account", True)


@pytest.mark.parametrize(
    ("message", "heals"),
    [
        (REFUSED, CODEX_WORDS),
        (REFUSED, {"type": "item.started", "item": {"type": "command_execution", "command": "make"}}),
        (REFUSED, {"type": "item.started", "item": {"type": "mcp_tool_call"}}),
        (BUSY, {"type": "item.completed", "item": {"type": "error", "message": "a warning"}}),
        ("Reconnecting... 1/5 (stream disconnected before completion: it was idle)", None),
    ],
)
def test_a_retry_of_codex_that_heals_or_is_the_networks_is_no_limit(
    message: str, heals: dict[str, object] | None
) -> None:
    """A command that runs for an hour after it, or a network that is away for one, must not end the work."""
    told = [(2.0, {"type": "error", "message": message}), *([(10.0, heals)] if heals else [])]
    detector = hear_codex((1, {"type": "turn.started"}), *told)
    assert detector.tick(now=NOW + timedelta(hours=1)) == ()


@pytest.mark.parametrize(
    ("agent", "records", "is_done"),
    [
        ("claude", [claude_words("Yes."), {"type": "result", "subtype": "success", "is_error": False}], True),
        ("claude", [BLOCKED], False),
        ("claude", [{"type": "result", "subtype": "success", "is_error": True}], False),
        ("claude", [{"type": "result", "subtype": "error_max_turns", "is_error": False}], False),
        ("codex", [{"type": "error", "message": BUSY}, CODEX_WORDS, {"type": "turn.completed"}], True),
        ("codex", [{"type": "turn.completed", "usage": {"input_tokens": 0, "output_tokens": 0}}], False),
        ("codex", [{"type": "turn.started"}], False),
        ("gemini", [GEMINI_WORDS, {"type": "result", "status": "success"}], True),
        ("gemini", [{"type": "result", "status": "success", "stats": {"output_tokens": 0}}], False),
        ("gemini", [{"type": "message", "role": "assistant", "content": "half"}], False),
        ("opencode", [{"type": "step_finish", "part": {"reason": "tool-calls"}}], False),
        ("opencode", [OPENCODE_WORDS, {"type": "step_finish", "part": {"reason": "stop"}}], True),
        ("opencode", [{"type": "step_finish", "part": {"reason": "stop", "tokens": {"output": 0}}}], False),
        (
            "opencode",
            [OPENCODE_WORDS, {"type": "step_finish", "part": {"reason": "stop"}}, opencode_error("x", 429)],
            False,
        ),
    ],
)
def test_a_turn_is_done_when_its_agent_says_so(
    agent: str, records: list[dict[str, object]], *, is_done: bool
) -> None:
    """One calls its failures a success, one ends with 0 in the middle, one reports what it gets over."""
    headless = load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in").adapter.headless
    assert headless is not None
    verdict = TurnVerdict(headless.says)
    for record in records:
        verdict.hear(record)
    assert verdict.is_done is is_done


@pytest.mark.parametrize(
    ("why", "refused"),
    [
        ("The user rejected permission to use this specific tool call.", ("read",)),
        ("The user has specified a rule which prevents you from using this specific tool call.", ("read",)),
        ("File not found: /etc/hostname", ()),
        ("grep: The user rejected permission to use this specific tool call.", ()),
    ],
)
def test_a_tool_that_opencode_was_not_allowed_to_use_is_named(why: str, refused: tuple[str, ...]) -> None:
    """It ends with 0 there, and nothing of what was to be done with the tool was done."""
    headless = load_adapter(
        os.path.join(find_builtin_folder(), "opencode"), origin="built-in"
    ).adapter.headless
    assert headless is not None
    verdict = TurnVerdict(headless.says)
    state = {"status": "error", "error": why}
    verdict.hear({"type": "tool_use", "part": {"tool": "read", "callID": "call_1", "state": state}})
    assert verdict.refused == refused
