"""The newest prompt the journal knows stands in where the agent's record lacks it, and only there."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.facts import Facts, Message
from agent_relay.domain.session import Handoff, Leg, Limit, Prompt, Session
from agent_relay.domain.values import replace
from agent_relay.packet.handoff_facts import add_newest_prompt, add_prompt, is_prompt_unanswered
from agent_relay.redact.text import redact_text

BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
ASKED_AT = BEGAN + timedelta(minutes=5)
KEY = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"
DOOR = Prompt("and  the door", ASKED_AT, "n")
LEG = Leg("L", "bob", 1, BEGAN, native_id="n", asked=DOOR)


def user(text: str, seconds: float | None) -> Message:
    """What the user said so many seconds after the journal's prompt."""
    return Message("user", text, 1, None if seconds is None else ASKED_AT + timedelta(seconds=seconds))


def agent(text: str, seconds: float | None) -> Message:
    """What the agent said then."""
    return replace(user(text, seconds), role="assistant")


def clean(text: str) -> str:
    """The text as the journal has it."""
    return redact_text(text).text


def add(*said: Message, leg: Leg = LEG, waiting: Message | None = None) -> Facts:
    """The facts of a conversation with what the journal knows."""
    facts = Facts("bob", native_id="n", transcript="t", conversation=said, unprocessed_prompt=waiting)
    return add_newest_prompt(facts, leg, waits=True, clean=clean)


SHED, DONE = user("paint the shed", -60), agent("painted", -50)


@pytest.mark.parametrize(
    "said",
    [
        (),
        (SHED, DONE),
        (user("paint the shed", -86_400), agent("painted", -86_000)),
        (user("and the door", -30), agent("which one?", -20)),
        (user("and the door", -3600),),
    ],
    ids=["empty", "lags", "old-conversation", "said-before-and-answered", "said-long-before"],
)
def test_a_prompt_the_record_lacks_is_the_newest_and_unanswered(said: tuple[Message, ...]) -> None:
    """The limit was heard before the row was written, or another conversation's record was read."""
    found = add(*said)
    assert [one.text for one in found.conversation] == [*(one.text for one in said), "and  the door"]
    waiting = found.unprocessed_prompt
    assert waiting is not None
    assert (waiting.text, waiting.at, waiting.place) == ("and  the door", ASKED_AT, "relay's journal")


def test_a_prompt_the_record_has_or_answers_is_not_added() -> None:
    """Told twice, it would be worked on twice."""
    rows: list[tuple[Message, ...]] = [
        (SHED, DONE, user("and the door", 0.2)),
        (SHED, DONE, user("and\nthe door", -0.4)),
        (SHED, DONE, user("and the door", None)),
        (SHED, DONE, user("and the door", None), agent("done", None)),
        (SHED, DONE, user("and the door", -0.4), agent("done", 3)),
        (SHED, DONE, user("and the door, please: the front one", 0)),
        (SHED, agent("painted, and the other thing too", 3)),
    ]
    assert [said for said in rows if add(*said).conversation != said] == []


def test_what_the_record_says_is_unanswered_stays_so() -> None:
    """Two prompts may wait, of which one was written."""
    found = add(SHED, waiting=SHED)
    assert found.unprocessed_prompt is not None
    assert found.unprocessed_prompt.text == "paint the shed\n\nand  the door"


def test_a_secret_does_not_make_a_prompt_another_one() -> None:
    """The journal holds it redacted, the record as it was typed."""
    leg = replace(LEG, asked=replace(DOOR, text="use [redacted: anthropic-key] for it"))
    assert len(add(user(f"use {KEY} for it", 0), leg=leg).conversation) == 1
    assert len(add(SHED, DONE, leg=leg).conversation) == 3


def test_of_a_long_prompt_the_records_own_text_wins() -> None:
    """The journal has its beginning only, and says so where that is all there is."""
    leg = replace(LEG, asked=replace(DOOR, text="and the", left_out=9))
    whole = user("and the door and the gate", 0)
    assert add(SHED, DONE, whole, leg=leg).conversation[-1] == whole
    assert add(SHED, DONE, leg=leg).conversation[-1].text == "and the\n[… 9 characters left out …]"


def test_a_prompt_of_a_conversation_that_was_left_is_not_brought_back() -> None:
    """What was cleared must not come back with the successor."""
    assert add(leg=replace(LEG, native_id="another")).conversation == ()
    assert len(add(leg=replace(LEG, native_id="")).conversation) == 1


def test_a_leg_that_was_asked_nothing_adds_nothing() -> None:
    """Journals of earlier versions know of no prompts."""
    assert add(SHED, leg=replace(LEG, asked=None)).conversation == (SHED,)


@pytest.mark.parametrize(
    ("reason", "is_over", "limited_s", "waits"),
    [
        ("rate_limit", True, None, True),
        ("manual", False, None, True),
        ("manual", True, None, False),
        ("manual", True, -5, False),
        ("manual", True, 5, True),
    ],
)
def test_a_prompt_waits_unless_its_turn_was_seen_to_end(
    reason: str,
    is_over: bool,  # noqa: FBT001 - a table's column
    limited_s: float | None,
    waits: bool,  # noqa: FBT001 - the same
) -> None:
    """A limit ends a turn, too, and answers nothing."""
    leg = replace(LEG, asked=replace(DOOR, is_over=is_over))
    session = Session("S", "/r", "/r", BEGAN, BEGAN, legs=(leg,))
    if limited_s is not None:
        at = ASKED_AT + timedelta(seconds=limited_s)
        session = replace(session, limit=Limit("bob", "account", "", "out", "hook", at))
    assert is_prompt_unanswered(session, leg, Handoff("H", "L", "bob", "ada", reason, BEGAN)) is waits


def test_a_prompt_known_from_elsewhere_is_the_newest_one() -> None:
    """The user's words are what must not be lost."""
    facts = Facts("bob", conversation=(SHED,))
    found = add_prompt(facts, "and the door", waits=True)
    assert [said.text for said in found.conversation] == ["paint the shed", "and the door"]
    assert found.unprocessed_prompt == Message("user", "and the door", 2)
    assert add_prompt(facts, "and the door", waits=False).unprocessed_prompt is None
    assert add_prompt(facts, " ", waits=True) == facts
