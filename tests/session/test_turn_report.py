"""What followers of a headless turn are told, event by event."""

from datetime import UTC

import pytest
from jsonschema import Draft202012Validator

from agent_relay.domain.events.session import LegNamed, SignalSeen
from agent_relay.domain.events.work import BudgetNoted
from agent_relay.domain.inputs import CancelAsked, StopAsked
from agent_relay.domain.protocol.run_output import (
    BudgetTold,
    Ended,
    FileEdited,
    HandedOver,
    LegOver,
    PlanTold,
    RunEvent,
    RunPlanStep,
    Text,
    Thought,
    ToolAnswered,
    ToolCalled,
    UsageTold,
    build_run_schema,
)
from agent_relay.domain.session import Leg
from agent_relay.session.turns.output import OutputItem
from agent_relay.session.turns.report import report_agent_output, report_end, report_event
from tests.session.story import NOW, RESET
from tests.session.turn_story import TurnStory

LEG = Leg("L1", "ann", 1, NOW)


def report(story: TurnStory) -> list[RunEvent]:
    told = (report_event(story.events[: index + 1], event, UTC) for index, event in enumerate(story.events))
    return [event for event in told if event is not None]


@pytest.mark.parametrize(
    ("mark", "then", "told"),
    [
        ("warn", "stop", ["→ Four of five. When it is used up, the session ends"]),
        ("uncounted", "handoff", ["→ Four of five"]),
        ("spent", "warn", ["→ Four of five. You decide what happens next"]),
        ("spent", "stop", []),
        ("open", "warn", []),
    ],
)
def test_a_budget_is_told_where_nothing_else_tells_of_it(mark: str, then: str, told: list[str]) -> None:
    """Nobody attached to a headless turn: its follower is who can be told."""
    story = TurnStory().take().at_work()
    story.note(BudgetNoted("L1", "five", mark, "four of five", then=then))
    events = [event for event in report(story) if isinstance(event, BudgetTold)]
    assert [event.message for event in events] == told
    assert {(event.leg, event.budget, event.mark) for event in events} <= {("L1", "five", mark)}


def test_a_handed_on_turn_is_told_in_its_order() -> None:
    """Who follows sees what an attached terminal would show."""
    story = TurnStory().take().at_work()
    story.note(LegNamed("L1", "native-1"), LegNamed("L1", "native-1", "/t.jsonl"), LegNamed("L1"))
    story.limit().gone().published().spawned()
    story.broke("no model")
    story.published().spawned()
    story.done()
    told = report(story)
    assert [event.type for event in told] == [
        "turn",
        "leg",
        "native",
        "signal",
        "leg-end",
        "handoff",
        "leg",
        "leg-end",
        "handoff-failed",
        "handoff",
        "leg",
        "leg-end",
    ]
    assert told[4] == LegOver(leg="L1", agent="ann", how="stopped", status=0, at=NOW.isoformat())
    handed = told[5]
    assert isinstance(handed, HandedOver)
    assert (handed.to_agent, handed.packet) == ("bob", "/r/.agent-relay/sessions/S/1.md")
    assert handed.message.startswith("→ ann hit its usage limit (resets 21:20). Continuing with bob.")


@pytest.mark.parametrize(
    ("said", "event"),
    [
        (OutputItem("text", text="hi", is_piece=True), Text(leg="L1", agent="ann", text="hi", more=True)),
        (OutputItem("text"), None),
        (
            OutputItem("tool", text="{}", name="Read", call="c"),
            ToolCalled(leg="L1", agent="ann", name="Read", call="c", input="{}"),
        ),
        (
            OutputItem("result", text="no", call="c", is_failure=True),
            ToolAnswered(leg="L1", agent="ann", call="c", is_error=True, output="no"),
        ),
        (OutputItem("usage", tokens={"input": 1}), UsageTold(leg="L1", agent="ann", tokens={"input": 1})),
        (
            OutputItem("thought", text="hm", is_piece=True),
            Thought(leg="L1", agent="ann", text="hm", more=True),
        ),
        (OutputItem("thought"), None),
        (
            OutputItem("edit", text="+x", name="a.py", call="c"),
            FileEdited(leg="L1", agent="ann", call="c", path="a.py", diff="+x"),
        ),
        (
            OutputItem("plan", steps=(RunPlanStep(id="1", status="done"),), is_whole=True),
            PlanTold(leg="L1", agent="ann", whole=True, steps=(RunPlanStep(id="1", status="done"),)),
        ),
        (OutputItem("plan"), None),
        (OutputItem("done"), None),
    ],
)
def test_what_an_agent_says_is_told_with_who_says_it(said: OutputItem, event: RunEvent | None) -> None:
    """Several agents may speak in one turn."""
    assert report_agent_output(said, LEG) == event


def test_the_end_says_how_and_until_when() -> None:
    """It is the one line a script has to read."""
    story = TurnStory().rests("bob", "cas").take().at_work()
    assert report_end(story.now, UTC) is None
    story.limit()
    assert report_end(story.now, UTC) is None
    story.gone()
    end = report_end(story.now, UTC)
    assert isinstance(end, Ended)
    assert (end.outcome, end.resets_at, len(end.skipped)) == ("resting", RESET.isoformat(), 2)
    assert end.message.endswith("The first reset is at 21:20.")


def test_a_turn_that_failed_for_a_refused_key_says_how_to_sign_in() -> None:
    """Nobody takes over for that: the last line of the turn is all the user has."""
    story = TurnStory().take().at_work()
    story.note(SignalSeen(story.leg, "ann", "failure", "auth", "stream", "Invalid API key", decides=True))
    story.broke("Invalid API key")
    end = report_end(story.now, UTC, sign_in="ann login")
    assert isinstance(end, Ended)
    assert (end.outcome, end.why, end.hint) == ("failed", "Invalid API key", "Sign in: ann login")
    other = report_end(TurnStory().take().at_work().broke("no model").now, UTC, sign_in="ann login")
    assert isinstance(other, Ended)
    assert other.hint is None


def test_in_a_chat_a_limit_is_told_of_the_seat_alone() -> None:
    """The others may talk on; whether anybody does, the chat's next line says, with the reset."""
    story = TurnStory().rests("cas").take_seat("ann", "bob", "cas").at_work()
    story.limit()
    story.gone()
    end = report_end(story.now, UTC)
    assert isinstance(end, Ended)
    assert (end.outcome, end.resets_at) == ("resting", RESET.isoformat())
    assert end.message.endswith("(resets 21:20). No agent can take its place.")
    assert "can take over" not in end.message


def test_every_end_is_told() -> None:
    """Nobody is left waiting for a turn that is over."""
    done = report_end(TurnStory().take(ends=False).at_work().done().now, UTC)
    failed = report_end(TurnStory().take().at_work().broke("no model").now, UTC)
    stopped = TurnStory().take().at_work()
    stopped.happens(StopAsked("enough")).gone()
    held = TurnStory().take().at_work()
    held.limit()
    held.happens(CancelAsked(held.now.handoff.id)).gone().published()
    ends = [done, failed, report_end(stopped.now, UTC), report_end(held.now, UTC)]
    assert [end.outcome for end in ends if end] == ["done", "failed", "stopped", "resting"]
    assert [end.why for end in ends if end][:3] == ["", "no model", "enough"]
    assert report_end(TurnStory().now, UTC) is None


def test_nothing_is_told_of_a_journal_without_its_session() -> None:
    """A torn journal is somebody else's error to tell."""
    story = TurnStory().take().at_work()
    story.limit().gone().published()
    named = {event.body.name: event for event in story.events}
    assert report_event([], named["packet.published"], UTC) is None
    assert report_event([], named["turn.begun"], UTC).session == ""
    assert report_event([], named["leg.ended"], UTC).agent == ""


def test_the_schema_allows_no_other_line() -> None:
    """It is published: who reads it builds on it."""
    schema = build_run_schema()
    allowed = Draft202012Validator(schema)
    end = {"type": "end", "session": "S", "agent": "ann", "outcome": "done"}
    assert allowed.is_valid(end)
    assert not allowed.is_valid({**end, "outcome": "maybe"})
    assert not allowed.is_valid({"type": "other"})
