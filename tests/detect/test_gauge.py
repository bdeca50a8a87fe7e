"""How full a context is, by records in the shapes the pinned agents write them."""

import tomllib
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.detect.reported_usage import ContextGauge
from agent_relay.domain.documents.rules import ContextRules, Rules
from agent_relay.domain.limits import Reading, Record, Source
from tests.house import tree

BEGAN = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
NOW = BEGAN + timedelta(minutes=5)


def load_rules_of(agent: str) -> Rules:
    with open(f"{tree.ADAPTERS}/{agent}/rules.toml", "rb") as file:
        return Rules.parse(tomllib.load(file))


def hear(agent: str, *records: tuple[Source, dict[str, object]]) -> list[tuple[int, int] | None]:
    """(used, room) after each record, a second apart; `None` where it said nothing."""
    gauge = ContextGauge(load_rules_of(agent).context, started_at=BEGAN)
    found = []
    for second, (source, data) in enumerate(records):
        at = NOW + timedelta(seconds=second)
        reading = gauge.hear(Record(source, data, at), now=at)
        found.append((reading.used, reading.room) if reading else None)
    return found


def status(size: object, model: str = "claude-opus-4-8", **usage: object) -> tuple[Source, dict[str, object]]:
    window = {"context_window_size": size, "current_usage": usage, "total_output_tokens": 42}
    return Source.STATUS_LINE, {"at": "x", "payload": {"model": {"id": model}, "context_window": window}}


def count(total: object, window: object = 258_400) -> tuple[Source, dict[str, object]]:
    info = {"last_token_usage": {"total_tokens": total}, "model_context_window": window}
    return Source.TRANSCRIPT, {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def answered(total: int, model: str, role: str = "main") -> tuple[Source, dict[str, object]]:
    known = {
        "event.name": "gemini_cli.api_response",
        "role": role,
        "model": model,
        "total_token_count": total,
    }
    return Source.TELEMETRY, {"attributes": known}


def message(session: str, model: str, **info: object) -> tuple[Source, dict[str, object]]:
    tokens = {"input": 5304, "output": 100, "reasoning": 0, "cache": {"read": 4096, "write": 0}}
    done = {"time": {"created": 1, "completed": 2}, "finish": "stop", "tokens": tokens}
    told = {"role": "assistant", "sessionID": session, "providerID": "p", "modelID": model, **done, **info}
    return Source.EVENT, {"type": "message.updated", "properties": {"info": told}}


PROVIDERS = {
    "type": "config",
    "name": "providers",
    "value": [
        {"models": {"a": {"id": "a", "providerID": "p", "limit": {"context": 200_000, "output": 64_000}}}},
        {"models": {"b": {"id": "b", "providerID": "p", "limit": {"context": 100_000, "output": 8_000}}}},
        {"models": {"c": {"id": "c", "limit": {"context": 1}}, "d": 7}},
        "torn",
    ],
}


def test_claude_says_it_in_its_status_line() -> None:
    """What is sent counts, cached or not; the room ends where it compacts by itself."""
    used = {"input_tokens": 1200, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 150_000}
    empty = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    told = hear(
        "claude", status(200_000, **used), status(1_000_000, "x[1m]", **used), status(200_000, **empty)
    )
    assert told == [(151_500, 167_000), (151_500, 967_000), (0, 167_000)]


def test_codex_says_it_in_its_rollout() -> None:
    """The total over the whole thread is many times the window; the last request is what it holds."""
    nothing = (Source.TRANSCRIPT, {"type": "event_msg", "payload": {"type": "token_count", "info": None}})
    assert hear("codex", nothing, count(9120), count(8327)) == [None, (9120, 242_896), (8327, 242_896)]


def test_gemini_says_it_in_its_telemetry_and_transcript() -> None:
    """No record holds its windows; its router's requests are not the conversation."""
    row = {"type": "gemini", "model": "gemini-3-flash-preview", "tokens": {"total": 9262}}
    squeezed = {"attributes": {"event.name": "gemini_cli.chat_compression", "tokens_after": 203}}
    told = hear(
        "gemini",
        answered(8071, "gemini-3.5-flash-lite", "utility_router"),
        answered(8458, "gemini-3.1-pro-preview"),
        (Source.TRANSCRIPT, row),
        (Source.TELEMETRY, squeezed),
        answered(500, "gemma-4-31b-it"),
        answered(500, "a-model-of-the-users-own"),
    )
    assert told == [None, (8458, 524_288), (9262, 524_288), (203, 524_288), (500, 128_000), (500, 0)]


def test_opencode_says_it_in_its_events_and_its_windows_when_asked() -> None:
    """A window nobody told of is unknown, not zero percent; agents it calls are not the conversation."""
    child = {"info": {"id": "ses_2", "parentID": "ses_1"}}
    told = hear(
        "opencode",
        message("ses_1", "a"),
        (Source.EVENT, PROVIDERS),
        message("ses_1", "a"),
        message("ses_1", "b"),
        message("ses_1", "c"),
        (Source.EVENT, {"type": "session.created", "properties": child}),
        message("ses_2", "a"),
        message("ses_1", "a", summary=True),
        message("ses_1", "a", finish=None),
    )
    rooms = [(9500, 0), None, (9500, 168_000), (9500, 92_000), (9500, 0)]
    assert told == [*rooms, None, None, None, None]


def test_without_a_screen_the_stream_says_it_without_a_window() -> None:
    """A ceiling in tokens counts then; a subagent's conversation is another one."""
    usage = {"input_tokens": 1200, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 15000}
    row: dict[str, object] = {"type": "assistant", "message": {"model": "claude-opus-4-8", "usage": usage}}
    own, sub = {**row, "parent_tool_use_id": None}, {**row, "parent_tool_use_id": "toolu_1"}
    assert hear("claude", (Source.STREAM, own), (Source.STREAM, sub)) == [(16500, 0), None]
    tokens = {"total": 9406, "input": 5304, "output": 6, "cache": {"write": 0, "read": 4096}}
    step: dict[str, object] = {"type": "step_finish", "part": {"tokens": tokens}}
    assert hear("opencode", (Source.STREAM, step)) == [(9406, 0)]


@pytest.mark.parametrize("strange", [-1, True, "many", 1.5, None, 10**12, [], {}])
def test_a_number_that_cannot_be_meant_is_none(strange: object) -> None:
    """A hostile or damaged record must not hand a session over."""
    assert hear("codex", count(strange)) == [None]
    assert hear("codex", count(100, strange)) == [(100, 0)]


def test_what_is_older_than_the_leg_or_the_newest_reading_says_nothing() -> None:
    """A forked transcript repeats what was true of another conversation; two sources tell the same twice."""
    gauge = ContextGauge(load_rules_of("codex").context, started_at=BEGAN)
    source, data = count(9000)
    late = BEGAN + timedelta(minutes=2)
    for at, expected in (
        (BEGAN - timedelta(seconds=1), None),
        (None, None),
        (late, Reading(9000, 242_896, late)),
        (BEGAN + timedelta(minutes=1), None),
        (late, Reading(9000, 242_896, late)),
    ):
        assert gauge.hear(Record(source, data, at), now=NOW) == expected


def test_an_event_is_as_old_as_its_hearing() -> None:
    """Live streams carry no time of their own."""
    gauge = ContextGauge(load_rules_of("opencode").context, started_at=BEGAN)
    source, data = message("ses_1", "a")
    assert gauge.hear(Record(source, data), now=NOW) == Reading(9500, 0, NOW, "p/a")


def test_a_conversation_without_a_name_is_the_users() -> None:
    """Only one that is known to be another agent's is left out; names that are none are passed over."""
    told = hear(
        "opencode",
        (Source.EVENT, {"type": "session.created", "properties": {"info": {"id": 7, "parentID": "ses_1"}}}),
        message("ses_1", "a", sessionID=None),
    )
    assert told == [None, (9500, 0)]


def test_agents_without_rules_say_nothing() -> None:
    """An adapter written before this works on."""
    source, data = count(9000)
    assert ContextGauge(ContextRules(), started_at=BEGAN).hear(Record(source, data, NOW), now=NOW) is None


def test_a_moment_to_come_does_not_outdate_what_is_heard_after_it() -> None:
    """A clock that was set back, or one forged record, must not make a leg's gauge deaf for good."""
    gauge = ContextGauge(load_rules_of("codex").context, started_at=BEGAN)
    source, data = count(200_000)
    late = gauge.hear(Record(source, data, NOW + timedelta(days=365)), now=NOW)
    assert late is not None
    assert late.at == NOW
    source, data = count(210_000)
    soon = NOW + timedelta(seconds=1)
    after = gauge.hear(Record(source, data, soon), now=soon)
    assert after is not None
    assert after.used == 210_000
