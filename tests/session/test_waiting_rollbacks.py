"""A rollback that waits for its turn's end is lost to nothing that comes before that."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import NoteRest, PublishPacket, StopLeg
from agent_relay.domain.events.work import HandoffClosed
from agent_relay.domain.inputs import (
    CloseAsked,
    ContinueAsked,
    HandoffAsked,
    HandoffWished,
    LegGone,
    ResetPassed,
    Restarted,
    StopAsked,
    TurnAsked,
    VerdictSaid,
)
from agent_relay.domain.session import Terms
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.handoff_history import HandoffHistory, HandoffStatus
from agent_relay.session.views.waiting import build_rest_view
from tests.session.story import HERE, RESET, RESTS, Story, made

HEADLESS = Availability(installed=True, capabilities=frozenset({"headless"}))
LATER = replace(RESTS, rests_until=RESET + timedelta(hours=1))
GIVEN_UP = Terms(rollback="cas", deliverables=("a door",))


def gives_up(terms: Terms = GIVEN_UP) -> Story:
    """Bob, in the middle of its turn, gave up what it was handed; cas waits for the turn's end."""
    story = made(terms)
    return story.happens(VerdictSaid(story.leg, "failed", "no hinges"))


def records(story: Story) -> dict[str, HandoffStatus]:
    return {one.id: one.status for one in HandoffHistory(story.events).records}


def verdicts(story: Story) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (body.verdict, body.note, body.skipped)
        for body in (event.body for event in story.events)
        if isinstance(body, HandoffClosed)
    ]


def is_rolled_back(story: Story) -> bool:
    return (story.begun.to_agent, story.begun.reason, story.begun.why) == ("cas", "failure", "no hinges")


def test_a_limit_does_not_take_the_place_of_a_rollback() -> None:
    """Whoever is first in the order would begin anew what the user wanted to go back."""
    story = gives_up()
    failed, request = story.handoff.id, story.now.request
    assert request is not None
    story.limit()
    assert story.names(last=3) == ["signal.seen", "handoff.closed", "handoff.begun"]
    assert is_rolled_back(story)
    assert (story.begun.handoff, story.begun.rolls_back) == (request.id, failed)
    assert [effect for effect in story.effects if isinstance(effect, NoteRest | StopLeg)] == [
        NoteRest("bob", "account", RESET, "You've hit it"),
        StopLeg(story.leg),
    ]
    story.take_over()
    assert records(story)[request.id] is HandoffStatus.WORKING


@pytest.mark.parametrize("lines", range(1, 4))
def test_a_rollback_outlives_a_daemon_that_is_killed_at_the_limit(lines: int) -> None:
    """The journal may hold any number of the lines that the limit wrote, and the ledger none of its rest."""
    story = gives_up().limit()
    story.refold(story.events[: len(story.events) - 3 + lines])
    story.happens(Restarted(leg_lives=True))
    assert (is_rolled_back(story), len(verdicts(story))) == (True, 1)
    assert story.now.request is None
    assert StopLeg("L2") in story.effects or StopLeg(story.leg) in story.effects
    assert any(isinstance(effect, NoteRest) for effect in story.effects)


def test_a_verdict_stays_if_its_rollback_agent_cannot_come_at_the_limit() -> None:
    """The next of the order goes on, and is told what is still expected."""
    story = gives_up()
    failed = story.handoff.id
    story.availability["cas"] = RESTS
    story.limit()
    assert story.names(last=4) == ["handoff.withdrawn", "handoff.closed", "signal.seen", "handoff.begun"]
    assert verdicts(story) == [("failed", "no hinges", ("cas: ann takes over first",))]
    assert (story.begun.to_agent, story.begun.deliverables) == ("ann", ("a door",))
    assert records(story)[failed] is HandoffStatus.FAILED


def test_a_rollback_waits_for_the_end_of_a_rest() -> None:
    """Nobody could come at the limit; at the reset the rollback agent can."""
    story = gives_up()
    story.availability |= {"ann": RESTS, "cas": RESTS}
    story.limit()
    assert (story.now.state, story.now.request is not None) == (State.RESTING, True)
    story.availability["cas"] = HERE
    story.happens(ResetPassed(), resume_at_reset=True)
    assert is_rolled_back(story)
    assert [event.body.name for event in story.events].count("consent.used") == 1


def offers(story: Story) -> str:
    """Whom the resting screen names with the key that goes on."""
    view = build_rest_view(story.now, story.world(now=RESET))
    return view.back if view is not None else ""


@pytest.mark.parametrize("back", [("cas",), ("ann", "cas"), ("bob", "cas")])
def test_who_goes_on_now_gets_the_rollback_that_waits(back: tuple[str, ...]) -> None:
    """A plain handoff, or the agent that gave up, would forget whom the user named for this."""
    story = gives_up()
    story.availability |= {"ann": LATER, "bob": LATER, "cas": LATER}
    story.limit()
    story.availability |= dict.fromkeys(back, HERE)
    story.happens(ResetPassed(), now=RESET)
    assert (story.now.state, story.now.offer, offers(story)) == (State.RESTING, "cas", "cas")
    story.happens(ContinueAsked(), now=RESET)
    assert is_rolled_back(story)
    assert len(verdicts(story)) == 1


def test_a_rollback_agent_that_is_back_later_still_comes_first() -> None:
    """The agent that gave up waits at its prompt, and nobody has told it to go on."""
    story = gives_up()
    story.availability |= {"ann": LATER, "bob": LATER, "cas": LATER}
    story.limit()
    story.availability["bob"] = HERE
    story.happens(ResetPassed(), now=RESET)
    assert (story.now.state, story.now.offer, offers(story)) == (State.READY, "bob", "bob")
    story.availability["cas"] = HERE
    assert offers(story) == "cas"
    story.happens(ContinueAsked(), now=RESET)
    assert is_rolled_back(story)


@pytest.mark.parametrize(("how", "status"), [("killed", 9), ("exited", 1), ("lost", 0)])
def test_a_rollback_does_not_need_the_agent_that_failed(how: str, status: int) -> None:
    """It may crash after it gave up."""
    story = gives_up().gone(how, status)
    assert is_rolled_back(story)
    assert story.effects == [PublishPacket(story.begun.handoff)]
    story.published().spawned()
    assert (story.now.agent, len(verdicts(story))) == ("cas", 1)


def test_a_verdict_stays_if_its_agent_is_let_go() -> None:
    """A person who quits wants nobody else; that it failed is known all the same."""
    story = gives_up().gone("exited", 0)
    assert verdicts(story) == [("failed", "no hinges", ("cas: bob ended before the turn was over",))]
    assert (story.now.state, story.now.handoff) == (State.ENDED, None)
    story = gives_up().happens(StopAsked("a person asked")).gone()
    assert (len(verdicts(story)), story.now.state) == (1, State.ENDED)


def test_a_verdict_stays_if_a_person_hands_over_to_somebody_else() -> None:
    """Their word counts before the rollback agent."""
    story = gives_up().happens(HandoffAsked("ann"))
    assert (story.begun.to_agent, len(verdicts(story))) == ("ann", 1)


def test_a_person_who_judges_first_ends_the_wait() -> None:
    """It must neither be judged twice nor rolled back although it was completed."""
    story = gives_up()
    failed = story.handoff.id
    story.happens(CloseAsked(failed, "completed"))
    assert story.names(last=2) == ["handoff.closed", "handoff.withdrawn"]
    story.says("ready").quiet()
    assert (story.now.handoff, len(verdicts(story))) == (None, 1)
    # The daemon was killed between the two lines.
    story = gives_up().happens(CloseAsked(failed, "completed"))
    story.refold(story.events[:-1]).happens(Restarted(leg_lives=True))
    story.says("ready").quiet()
    assert (story.now.handoff, story.now.request, len(verdicts(story))) == (None, None, 1)


def rolls_back_headless(availability: Availability = HEADLESS) -> Story:
    """Bob gave up in a headless turn, with cas as its rollback agent."""
    story = Story()
    story.availability = {"ann": HEADLESS, "bob": HEADLESS, "cas": availability}
    story.happens(TurnAsked("ann", "do it")).spawned().says("busy")
    story.happens(HandoffWished(story.leg, "bob", "finish it", "TASK: finish it", "test it"))
    story.happens(LegGone(story.leg, "exited", 0, is_done=True)).published().spawned().says("busy")
    story.session = replace(story.now, done=tuple(replace(one, terms=GIVEN_UP) for one in story.now.done))
    return story.happens(VerdictSaid(story.leg, "failed", "no hinges"))


def test_a_headless_rollback_comes_at_a_limit_and_after_a_failed_turn() -> None:
    """A script's turn is finished by the agent the user named for that."""
    story = rolls_back_headless()
    assert is_rolled_back(story.limit())
    story = rolls_back_headless()
    story.happens(LegGone(story.leg, "exited", 1))
    assert is_rolled_back(story)
    assert story.effects == [PublishPacket(story.begun.handoff)]


def test_a_rollback_agent_that_needs_a_screen_does_not_take_a_headless_turn() -> None:
    """It could not work on it."""
    story = rolls_back_headless(HERE)
    story.happens(LegGone(story.leg, "exited", 0, is_done=True))
    assert verdicts(story)[0][2] == ("cas: its adapter does not declare headless",)
    assert story.now.handoff is None
