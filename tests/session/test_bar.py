"""The bar: who gives way to whom, why, and what is awaited, from the decision to the first sign of work."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest

from agent_relay.domain.inputs import (
    CancelAsked,
    DeliverFailed,
    HandoffAsked,
    RetryAsked,
    StopAsked,
)
from agent_relay.domain.limits import Evidence, Scope, Source
from agent_relay.domain.session import Session, Step
from agent_relay.domain.text.plain import count_columns
from agent_relay.domain.values import replace
from agent_relay.session.views.waiting import (
    NO_DELIVERY_PROGRESS,
    DeliveryProgress,
    DeliveryStage,
    HandoffBar,
    build_bar,
    build_question_bar,
)
from tests.session.story import HERE, Story, asked, filling
from tests.session.turn_story import TurnStory

ZONE = ZoneInfo("Europe/Berlin")
LIMIT = Evidence(Source.HOOK, "You've hit your session limit · resets 10:20pm")


def bar(session: Session, delivery: DeliveryProgress = NO_DELIVERY_PROGRESS) -> HandoffBar:
    return build_bar(session, delivery, ZONE)


def limited(step: Step = Step.BEGUN) -> Story:
    """A failover from ann to bob whose limit names itself, at `step`."""
    return Story().start().to_step(step, evidence=LIMIT)


def test_the_bar_says_that_the_successor_sums_up_the_record() -> None:
    """Two minutes without a word would look like a standstill; Esc cancels here, too."""
    session = limited(Step.STOPPED).now
    assert session.handoff is not None
    digesting = replace(session, handoff=replace(session.handoff, is_digesting=True))
    texts = bar(digesting).texts
    assert texts[2] == "ann → bob · bob sums up the record first · Esc cancels"
    assert texts[4] == "ann→bob sums up"


def test_a_limit_says_who_gives_way_to_whom_why_until_when_and_what_is_awaited() -> None:
    """The one sentence a person needs at the moment everything stops; the reset is in their zone."""
    assert bar(limited().now) == HandoffBar(
        (
            "relay: ann → bob · ann hit its session limit (resets 22:20) · ann is ending · Esc cancels",
            "ann → bob · limit until 22:20 · ann is ending · Esc cancels",
            "ann → bob · ann is ending · Esc cancels",
            "ann → bob · ann is ending",
            "ann→bob ending",
        ),
        holds_keys=True,
    )


@pytest.mark.parametrize(
    ("step", "said"),
    [(Step.BEGUN, "claude ending"), (Step.STOPPED, "writing packet"), (Step.SPAWNING, "→codex starts")],
)
def test_in_twenty_columns_what_is_awaited_is_said_of_the_right_agent(step: Step, said: str) -> None:
    """`→codex ending` told of the successor what the predecessor does."""
    session = limited(step).now
    assert session.handoff is not None
    named = replace(session.handoff, from_agent="claude", to_agent="codex")
    assert bar(replace(session, handoff=named)).texts[-1] == said


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step.BEGUN, "ann → bob · ann is ending"),
        (Step.STOPPED, "ann → bob · writing the packet"),
        (Step.SPAWNING, "ann → bob · bob is starting"),
        (Step.SPAWNED, "ann → bob · bob is starting"),
        (Step.DELIVERED, "ann → bob · bob reads the packet"),
    ],
)
@pytest.mark.parametrize("begin", [limited, asked])
def test_every_step_says_what_it_waits_for(begin: Callable[[Step], Story], step: Step, said: str) -> None:
    """For a handoff somebody asked for as for one a limit forced."""
    assert said in bar(begin(step).now).texts


def test_an_agent_that_comes_back_is_said_to_resume_its_own_conversation() -> None:
    """It takes longer than a fresh start, and what was said there is on the screen again."""
    story = Story().start().says("busy").limit().take_over()
    story.availability["ann"] = HERE
    story.happens(HandoffAsked("ann")).gone().published()
    assert "bob → ann · ann is starting in its own conversation" in bar(story.now).texts


def test_a_handoff_somebody_asked_for_says_so() -> None:
    """Nobody looks for a limit that there was not."""
    assert bar(asked(Step.BEGUN).now).texts[0] == (
        "relay: ann → bob · on request · ann is ending · Esc cancels"
    )


def test_the_first_sign_of_work_takes_it_away() -> None:
    """From then on the screen is the successor's."""
    story = limited(Step.DELIVERED)
    assert bar(story.says("busy").now) == HandoffBar()
    assert bar(Story().start().now) == HandoffBar()


def test_what_ends_a_handoff_takes_it_away() -> None:
    """A bar that stayed would keep the person's keys for ever."""
    failed = limited(Step.SPAWNED).says("ready")
    handoff = failed.now.handoff
    assert handoff is not None
    assert bar(failed.happens(DeliverFailed(handoff.id, failed.leg, "it did not begin")).now) == HandoffBar()
    assert bar(limited(Step.SPAWNED).happens(StopAsked("by hand")).now) == HandoffBar()
    cancelled = limited(Step.STOPPED)
    cancelled.happens(CancelAsked(cancelled.now.handoff.id)).published()  # type: ignore[union-attr]
    assert bar(cancelled.now) == HandoffBar()


def test_a_question_of_the_successor_is_for_the_person_to_answer_there() -> None:
    """Keys that waited would keep it waiting; Esc is its own there."""
    found = bar(limited(Step.SPAWNED).says("asking").now)
    assert not found.holds_keys
    assert found.texts == (
        "relay: ann → bob · ann hit its session limit (resets 22:20) · bob needs an answer: give it here",
        "ann → bob · limit until 22:20 · bob needs an answer: give it here",
        "ann → bob · bob needs an answer: give it here",
        "ann→bob needs answer",
        "→bob needs answer",
    )


def test_below_a_question_of_an_agent_at_work_earlier_keys_wait() -> None:
    """The handoff is over and some of what was typed during it is not given yet."""
    story = limited(Step.DELIVERED).says("busy")
    assert build_question_bar(story.now) == HandoffBar()
    found = build_question_bar(story.says("asking").now)
    assert found == HandoffBar(
        (
            "relay: bob needs an answer: give it here · what you typed before it waits",
            "bob needs an answer · earlier keys wait",
            "bob needs an answer",
            "needs answer",
        ),
        only_held=True,
    )
    assert build_question_bar(story.says("busy").now) == HandoffBar()
    assert build_question_bar(limited(Step.SPAWNED).says("asking").now) == HandoffBar()


@pytest.mark.parametrize(
    ("stage", "clause", "holds_keys"),
    [
        (DeliveryStage.NONE, "giving bob the packet", True),
        (DeliveryStage.GIVING, "giving bob the packet", True),
        (DeliveryStage.SUBMITTED, "bob reads the packet", True),
        (DeliveryStage.WAITS_FOR_LINE, "bob's input line has text: send or clear it", False),
    ],
)
def test_a_delivery_says_how_far_it_has_come(stage: DeliveryStage, clause: str, *, holds_keys: bool) -> None:
    """The journal has no line for each of its steps."""
    story = limited(Step.SPAWNED).says("ready")
    found = bar(story.now, DeliveryProgress(story.leg, stage))
    assert f"ann → bob · {clause}" in found.texts
    assert found.holds_keys is holds_keys
    assert "ann → bob · giving bob the packet" in bar(story.now, DeliveryProgress("another", stage)).texts


def test_a_wait_that_lasts_is_told_in_its_place() -> None:
    """The person sees what keeps it, and that it is known."""
    story = limited(Step.SPAWNED).says("ready")
    note = "bob has not begun to work on its packet for 12 s"
    found = bar(story.now, DeliveryProgress(story.leg, DeliveryStage.SUBMITTED, note))
    assert found.texts[2] == f"ann → bob · {note} · Esc cancels"
    assert found.texts[3] == "ann → bob · bob reads the packet"


def test_an_agent_that_works_on_something_else_keeps_its_keys() -> None:
    """Whoever had the handoff tried again may have to steer what it does meanwhile."""
    story = limited(Step.SPAWNED).says("ready")
    handoff = story.now.handoff
    assert handoff is not None
    story.happens(DeliverFailed(handoff.id, story.leg, "it did not begin")).says("busy")
    found = bar(story.happens(RetryAsked(handoff.id)).now)
    assert "ann → bob · bob is busy; it gets the packet next" in found.texts
    assert not found.holds_keys


def test_what_was_cancelled_says_what_is_still_to_be_done() -> None:
    """And no more that it can be cancelled."""
    story = limited()
    found = bar(story.happens(CancelAsked(story.now.handoff.id)).now)  # type: ignore[union-attr]
    assert found.texts[1] == "ann → bob · limit until 22:20 · cancelled: ann is ending"
    assert found.holds_keys


def test_the_same_agent_is_named_by_what_is_other_about_it() -> None:
    """`ann → ann` would say nothing."""
    story = Story().start()
    story.limit(Scope.MODEL, model="opus")
    assert bar(story.now).texts
    by_model = replace(story.now.handoff, to_agent="ann", model="sonnet")  # type: ignore[type-var]
    assert bar(replace(story.now, handoff=by_model)).texts[-2] == "ann → ann on sonnet · ann is ending"
    full = filling().turn(950).quiet()
    assert full.now.handoff is not None
    assert "ann → ann (new conversation) · ann is ending" in bar(full.now).texts
    assert bar(full.now).texts[1].startswith("ann → ann (new conversation) · context full · ")


@pytest.mark.parametrize(
    ("source", "target", "shortest"),
    [
        ("a", "b", "a→b needs answer"),
        ("ann", "bob", "→bob needs answer"),
        ("claude", "codex", "needs answer"),
        ("opencode", "gemini", "needs answer"),
        ("understudy", "opencode", "needs answer"),
        ("a-long-agent-name", "another-long-agent", "needs answer"),
    ],
)
def test_the_shortest_text_fits_twenty_columns(source: str, target: str, shortest: str) -> None:
    """Half a screen beside an editor; the texts before it fall in length."""
    story = limited(Step.SPAWNED).says("asking")
    named = replace(story.now.handoff, from_agent=source, to_agent=target)  # type: ignore[type-var]
    texts = bar(replace(story.now, handoff=named)).texts
    assert texts[-1] == shortest
    lengths = [count_columns(text) for text in texts]
    assert lengths == sorted(set(lengths), reverse=True)
    assert 3 <= len(texts) <= 6


def test_what_an_agent_said_of_its_failure_cannot_paint() -> None:
    """A reason is quoted from whoever failed."""
    story = asked(Step.BEGUN)
    why = "\x1b[2Jit broke\nbadly " + "x" * 5000
    hostile = replace(story.now.handoff, reason="failure", why=why)  # type: ignore[type-var]
    texts = bar(replace(story.now, handoff=hostile)).texts
    assert texts[0].startswith("relay: ann → bob · it broke badly xxx")
    assert len(texts[0]) < 300
    assert not any("\x1b" in text or "\n" in text for text in texts)


def test_nothing_is_shown_of_a_turn_without_a_screen() -> None:
    """Nobody looks at one."""
    story = TurnStory().take().at_work()
    story.limit()
    assert story.now.handoff is not None
    assert bar(story.now) == HandoffBar()
