"""Whether an agent's transcript holds what its hooks say it was asked."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.agents.adapters import load_rules
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.session import Leg
from agent_relay.domain.values import ClockJump
from agent_relay.sources.record_fields import find_record_time
from agent_relay.sources.recording import read_evidence
from tests.support.monitored import NewestPrompt
from tests.support.real import CHECKOUT
from tests.support.real_launch import get_adapter

EVENTS = os.path.join(CHECKOUT, "tests/golden/transcripts/opencode/events/opencode-1.18.33")
BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
LATER = BEGAN + timedelta(minutes=1)
CONTINUATION = (
    "Your claude.ai usage limit has reset. Continue the task you were working on when the limit was reached;"
    " do not repeat work that is already complete."
)


def hear(agent: str, *records: Record) -> NewestPrompt:
    """What is known after these."""
    newest = NewestPrompt(Leg("leg", agent, 1, BEGAN), load_rules(get_adapter(agent)).progress)
    for record in records:
        newest.hear(record, "s", now=LATER + timedelta(hours=1))
    return newest


def ask(seconds: float, text: str = "paint the shed") -> Record:
    """A prompt as a hook tells it."""
    payload = {"hook_event_name": "UserPromptSubmit", "prompt": text}
    return Record(Source.HOOK, {"payload": payload}, LATER + timedelta(seconds=seconds))


def row(seconds: float, kind: str = "user", **more: object) -> Record:
    """A row of the transcript."""
    data = {"type": kind, "message": {"content": "paint the shed"}, **more}
    return Record(Source.TRANSCRIPT, data, LATER + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("records", "is_recorded"),
    [
        ((), True),
        ((ask(0),), False),
        ((ask(0), row(-0.2)), True),
        ((row(-0.2), ask(0)), True),
        ((row(-20), ask(0)), False),
        ((row(-20), row(-3, "assistant"), ask(0)), False),
        ((ask(0), row(0.2, "assistant")), True),
        ((ask(0), row(0.2, "assistant", isApiErrorMessage=True)), False),
        ((ask(0), row(0.2, toolUseResult={"stdout": ""})), False),
        ((ask(0), row(-0.2), ask(30, "and the door")), False),
    ],
)
def test_a_record_lacks_a_prompt_until_it_shows_it_or_an_answer(
    records: tuple[Record, ...],
    is_recorded: bool,  # noqa: FBT001 - a table's column
) -> None:
    """Only then is it waited for, and every failover else is as fast as before."""
    assert hear("claude", *records).is_recorded() is is_recorded


def test_an_agent_whose_transcript_tells_first_is_never_waited_for() -> None:
    """The row is the news of the prompt itself."""
    prompt = Record(Source.TRANSCRIPT, {"type": "prompt", "text": "paint the shed"}, LATER)
    assert hear("demo", prompt).is_recorded() is True


@pytest.mark.parametrize(("lag_s", "is_recorded"), [(0.0, True), (60.0, False)])
def test_a_row_counts_for_its_own_prompt_after_the_clock_was_set_back(
    lag_s: float, *, is_recorded: bool
) -> None:
    """A row of before, by the old time newer than any to come, would stand in for one that is missing."""
    newest = hear("claude", ask(0), row(0), ask(lag_s))
    newest.shift(ClockJump(timedelta(hours=-3), LATER - timedelta(hours=2, minutes=50)))
    assert newest.is_recorded() is is_recorded
    again = LATER - timedelta(hours=2, minutes=40)
    newest.hear(ask(-9600, "paint the fence"), "s", now=again)
    assert not newest.is_recorded()
    newest.hear(row(-9600), "s", now=again)
    assert newest.is_recorded()


def test_of_a_prompt_of_a_megabyte_it_is_told_how_much_is_missing() -> None:
    """A successor that believes some thousand characters are missing does not ask for the rest of a file."""
    newest = NewestPrompt(Leg("leg", "claude", 1, BEGAN), load_rules(get_adapter("claude")).progress)
    seen = newest.hear(ask(0, "x" * 1_000_000), "s", now=LATER)
    assert seen is not None
    assert (len(seen.text), seen.left_out) == (20_000, 980_000)


@pytest.mark.parametrize(("text", "seen"), [(CONTINUATION, ""), ("fix the bug", "fix the bug")])
def test_its_own_prompt_is_not_the_user_s(text: str, seen: str) -> None:
    """A packet must say what the user asked last, not what the agent told itself."""
    newest = NewestPrompt(Leg("leg", "claude", 1, BEGAN), load_rules(get_adapter("claude")).progress)
    payload = {"hook_event_name": "UserPromptSubmit", "prompt": text}
    told = newest.hear(Record(Source.HOOK, payload, BEGAN), "native", now=BEGAN)
    assert (told.text if told is not None else "") == seen


def part(talk: str = "ses_1", *, text: str = "paint the shed", **more: object) -> Record:
    """A part of a message as opencode's server tells of it."""
    told = {"type": "text", "text": text, "sessionID": talk, "messageID": "msg_1", **more}
    event = {
        "type": "message.part.updated",
        "properties": {"part": told, "time": LATER.timestamp() * 1000},
    }
    return Record(Source.EVENT, event, find_record_time(event))


def begun(talk: str, **more: object) -> Record:
    """The news of a conversation, which has no time."""
    return Record(Source.EVENT, {"type": "session.created", "properties": {"info": {"id": talk, **more}}})


@pytest.mark.parametrize(
    ("records", "seen"),
    [
        ([part()], "paint the shed"),
        ([begun("ses_1"), part()], "paint the shed"),
        ([begun("ses_1", parentID="ses_0"), part()], ""),
        ([begun("ses_2", parentID="ses_1"), part()], "paint the shed"),
        ([part(time={"start": 1, "end": 2})], ""),
        ([part(synthetic=True)], ""),
        ([part(talk="", type="reasoning")], ""),
    ],
)
def test_the_user_s_words_are_told_from_the_model_s_and_from_those_to_another_agent(
    records: list[Record], seen: str
) -> None:
    """A packet quotes what the user asked last; an agent that another one calls is asked by that one."""
    rules = load_rules(get_adapter("opencode"))
    newest = NewestPrompt(Leg("leg", "opencode", 1, BEGAN), rules.progress, rules.context.sides)
    told = [newest.hear(record, "ses_1", now=LATER) for record in records]
    assert [one.text for one in told if one is not None] == ([seen] if seen else [])


@pytest.mark.parametrize("name", ["transient-503-120x40", "go-weekly-limit-120x40"])
def test_a_prompt_recorded_with_opencode_is_told_once(name: str) -> None:
    """Its message is told of three times, the last one after the answer."""
    rules = load_rules(get_adapter("opencode"))
    began = datetime(2026, 11, 1, tzinfo=UTC)
    newest = NewestPrompt(Leg("leg", "opencode", 1, began), rules.progress, rules.context.sides)
    told = [newest.hear(record, "s", now=LATER) for record in read_evidence(f"{EVENTS}-{name}.jsonl.gz")]
    assert [one.text for one in told if one is not None] == ["hello"]
