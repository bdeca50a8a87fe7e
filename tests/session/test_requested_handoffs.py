"""What an agent asks for through its tools happens when its turn is over, and to nobody else's session."""

import pytest

from agent_relay.domain.effects import AwaitQuiet, PublishPacket, ShowMessage, StopLeg
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.events.work import CriterionChecked, HandoffBegun, HandoffClosed
from agent_relay.domain.inputs import (
    AcceptSaid,
    CancelAsked,
    HandoffWished,
    LegGone,
    NoteSaid,
    Restarted,
    TurnAsked,
    VerdictSaid,
)
from agent_relay.domain.protocol.handoff_report import BlockerReport, CriterionReport, HandoffReport
from agent_relay.domain.session import NO_TERMS, Terms
from agent_relay.domain.state import State
from agent_relay.session.decision import Availability
from agent_relay.session.handoff_history import HandoffHistory, HandoffStatus
from agent_relay.session.views.messages import render_intervention, render_message
from tests.session.story import NOW, RESTS, Story, made

HEADLESS = Availability(installed=True, capabilities=frozenset({"headless"}))


def at_work() -> Story:
    """Ann works on a turn."""
    return Story().start().says("busy")


def wish(story: Story, agent: str = "bob", **more: object) -> Story:
    """The agent at work asks for a handoff."""
    return story.happens(HandoffWished(story.leg, agent, "finish it", "TASK: finish it", "test it", **more))


def headless(*agents: str) -> Story:
    """A headless turn of the first agent, under way."""
    story = Story(agents)
    story.availability = dict.fromkeys(agents, HEADLESS)
    return story.happens(TurnAsked(agents[0], "do it")).spawned().says("busy")


def records(story: Story) -> dict[str, HandoffStatus]:
    return {one.id: one.status for one in HandoffHistory(story.events).records}


def test_an_agent_hands_over_when_its_turn_is_over() -> None:
    """Stopped in the middle of its turn it could not even read the answer to its request."""
    story = wish(at_work())
    assert story.effects == [ShowMessage(story.leg)]
    assert (story.now.state, story.now.handoff) == (State.BUSY, None)
    assert "ann hands over to bob when its turn is over: finish it" in render_message(story.now, NOW.tzinfo)
    request = story.now.request
    assert request is not None
    assert records(story) == {request.id: HandoffStatus.REQUESTED}
    story.says("ready")
    assert story.effects == [AwaitQuiet(story.leg)]
    story.quiet()
    assert (story.begun.handoff, story.begun.to_agent, story.begun.why) == (
        request.id,
        "bob",
        "ann asked for it",
    )
    assert story.effects == [StopLeg(story.leg)]
    assert story.now.request is None
    story.take_over()
    assert records(story) == {request.id: HandoffStatus.DONE}


def test_what_was_asked_for_is_begun_after_a_crash() -> None:
    """The daemon may be killed between the request and the turn's end, or after that."""
    story = wish(at_work()).happens(Restarted(leg_lives=True))
    assert story.effects == []
    story.says("ready").happens(Restarted(leg_lives=True))
    assert story.effects == [AwaitQuiet(story.leg)]
    assert wish(Story().start()).effects == [ShowMessage("L1"), AwaitQuiet("L1")]


def test_a_quiet_moment_without_a_request_is_no_handoff() -> None:
    """Other reasons wait for the same moment."""
    story = at_work().says("ready").quiet()
    assert (story.now.handoff, story.effects) == (None, [])
    story = wish(at_work()).quiet()
    assert story.now.handoff is None, "it works again"


@pytest.mark.parametrize(
    ("agent", "error", "why"),
    [
        ("ann", WrongUseError, "ann is already at work"),
        ("cas", NobodyAvailableError, "cas: rests until 19:20"),
        ("dan", NobodyAvailableError, "dan: not installed"),
    ],
)
def test_who_cannot_take_over_is_refused_at_once(agent: str, error: type[Exception], why: str) -> None:
    """The agent can still say something else to its user; to itself it never hands over."""
    story = at_work()
    story.availability["cas"] = RESTS
    with pytest.raises(error, match=why):
        wish(story, agent)


def test_a_second_request_is_refused() -> None:
    """An agent that asks in a loop must not fill the journal."""
    with pytest.raises(WrongUseError, match="to bob is already requested"):
        wish(wish(at_work()), "cas")


def test_an_agent_that_was_replaced_has_no_say() -> None:
    """Its process may live on for a moment, and its tools with it."""
    story, old = made(NO_TERMS), "L1"
    for said in (
        HandoffWished(old, "cas", "t", "t", "n"),
        AcceptSaid(old),
        VerdictSaid(old, "completed"),
        NoteSaid(old, "t"),
    ):
        with pytest.raises(WrongUseError, match="no longer at work"):
            story.happens(said)


def test_no_other_handoff_begins_beside_one_under_way() -> None:
    """Its predecessor is already being stopped."""
    story = at_work().limit()
    with pytest.raises(WrongUseError):
        wish(story, "cas")


def test_a_person_can_prevent_what_an_agent_asked_for() -> None:
    """Nobody but the user decides who works for them."""
    story = wish(at_work())
    request = story.now.request
    assert request is not None
    story.happens(CancelAsked(request.id))
    assert story.now.request is None
    assert (
        render_intervention(story.now, request.id) == f"→ Handoff {request.id} will not begin; ann goes on."
    )
    assert records(story) == {request.id: HandoffStatus.CANCELLED}
    assert story.says("ready").quiet().now.handoff is None


def test_a_request_is_dropped_if_its_target_became_unavailable() -> None:
    """Between the request and the turn's end its limit may have been met elsewhere; the agent goes on."""
    story = wish(at_work())
    story.availability["bob"] = RESTS
    story.says("ready").quiet()
    assert story.names(last=1) == ["handoff.withdrawn"]
    assert story.effects == [ShowMessage(story.leg)]
    assert (story.now.state, story.now.request) == (State.READY, None)


def test_a_request_ends_with_its_agent() -> None:
    """Who left by themselves hand nothing over."""
    story = wish(at_work())
    story.happens(LegGone(story.leg, "exited", 0))
    assert story.now.request is None
    assert list(records(story).values()) == [HandoffStatus.CANCELLED]


def test_a_limit_comes_before_what_was_asked_for() -> None:
    """The agent cannot end its turn any more; its words are kept for the packet."""
    story = wish(at_work(), "cas").limit()
    assert (story.begun.to_agent, story.now.request) == ("bob", None)
    assert story.now.note is not None
    assert story.now.note.next_step == "test it"


def test_its_priority_and_what_is_still_expected_go_along() -> None:
    """A request adds to what a person set; it takes nothing away."""
    story = wish(
        made(Terms(("a door",), priority="low", rollback="cas", questions=("why?",))),
        "cas",
        priority="urgent",
    )
    story.says("ready").quiet()
    assert story.begun.deliverables == ("a door",)
    assert (story.begun.priority, story.begun.rollback, story.begun.questions) == ("urgent", "", ())


def test_a_headless_agent_hands_over_instead_of_ending_its_turn() -> None:
    """A script that asked for a turn gets the answer of the agent that finished it."""
    story = wish(headless("ann", "bob"))
    assert story.effects == []
    story.happens(LegGone(story.leg, "exited", 0, is_done=True))
    assert story.names(last=3) == ["handoff.begun", "leg.ended", "handoff.stopped"]
    assert story.effects == [PublishPacket(story.begun.handoff)]
    story.published().spawned()
    assert (story.now.agent, story.now.open_turn is not None) == ("bob", True)


def test_a_headless_turn_ends_if_nobody_can_take_it() -> None:
    """Its own answer is still there."""
    story = wish(headless("ann", "bob"))
    story.availability["bob"] = RESTS
    story.happens(LegGone(story.leg, "exited", 0, is_done=True))
    assert story.names(last=4) == ["handoff.withdrawn", "turn.ended", "leg.ended", "session.waits"]


def test_a_turn_that_may_take_no_further_agent_is_not_handed_over() -> None:
    """`run -n 1` means one agent."""
    story = Story(("ann", "bob"))
    story.availability = dict.fromkeys(("ann", "bob"), HEADLESS)
    story.happens(TurnAsked("ann", "do it", most=1)).spawned().says("busy")
    with pytest.raises(WrongUseError, match="no further agent"):
        wish(story)


def test_in_a_chat_nobody_hands_over() -> None:
    """Whose turn is next is decided there already."""
    story = Story(("ann", "bob"))
    story.availability = dict.fromkeys(("ann", "bob"), HEADLESS)
    story.happens(TurnAsked("ann", "do it", seat="ann", others=("bob",))).spawned().says("busy")
    with pytest.raises(WrongUseError, match="in a chat"):
        wish(story)


def test_an_agent_accepts_the_handoff_that_brought_it_once() -> None:
    """Whoever asks later sees that it knew what is expected."""
    story = made(NO_TERMS)
    story.happens(AcceptSaid(story.leg, "understood"))
    assert story.now.accepted == (story.handoff.id,)
    assert story.happens(AcceptSaid(story.leg)).effects == []
    assert story.now.accepted == (story.handoff.id,)


def test_an_agent_no_handoff_brought_has_none_to_judge() -> None:
    """A first agent, and one whose packet is still on its way."""
    for said in (AcceptSaid("L1"), VerdictSaid("L1", "completed")):
        with pytest.raises(WrongUseError, match="this agent was not started by a handoff"):
            at_work().happens(said)


def test_an_agent_completes_its_handoff() -> None:
    """The verdict is the same as a person's."""
    story = made(Terms(("a door",)))
    story.happens(VerdictSaid(story.leg, "completed", "it is there"))
    closed = story.events[-1].body
    assert isinstance(closed, HandoffClosed)
    assert (closed.verdict, closed.note) == ("completed", "it is there")
    with pytest.raises(WrongUseError, match="judged already"):
        story.happens(VerdictSaid(story.leg, "failed"))


def test_a_rollback_agent_comes_when_the_turn_is_over() -> None:
    """An agent that gives up is not stopped before it has said why."""
    story = made(Terms(rollback="cas", deliverables=("a door",)))
    failed = story.handoff.id
    story.happens(VerdictSaid(story.leg, "failed", "no hinges"))
    assert story.effects == [ShowMessage(story.leg)]
    with pytest.raises(WrongUseError, match="already requested"):
        story.happens(VerdictSaid(story.leg, "failed"))
    request = story.now.request
    assert request is not None
    story.says("ready").quiet()
    assert story.names(last=2) == ["handoff.closed", "handoff.begun"]
    assert (story.begun.handoff, story.begun.to_agent, story.begun.rolls_back) == (
        request.id,
        "cas",
        failed,
    )
    assert story.begun.why == "no hinges"
    assert isinstance(story.begun, HandoffBegun)


def test_a_failure_without_a_rollback_agent_is_only_noted() -> None:
    """Nobody was named to take over."""
    story = made(Terms(("a door",)))
    story.happens(VerdictSaid(story.leg, "failed", "no hinges"))
    assert story.names(last=1) == ["handoff.closed"]
    assert story.now.request is None


def test_a_failure_is_noted_even_if_its_rollback_agent_cannot_come() -> None:
    """The agent that failed stays at work."""
    story = made(Terms(rollback="cas", deliverables=("a door",)))
    story.happens(VerdictSaid(story.leg, "failed", "no"))
    story.availability["cas"] = RESTS
    story.says("ready").quiet()
    assert story.names(last=2) == ["handoff.withdrawn", "handoff.closed"]
    assert story.now.handoff is None


def test_evidence_of_a_failure_is_recorded_before_the_rollback_agent_comes() -> None:
    """It stays even if a person cancels that; the rest of the report comes with the verdict, by the agent."""
    report = HandoffReport(
        deliverables=("a frame",),
        criteria=(CriterionReport("1", met=False, how="pushed it"),),
        incomplete=("the hinges",),
        blockers=(BlockerReport("access", "no key", "the key"),),
        questions=("which lock?",),
        suggested_next="buy one",
    )
    story = made(Terms(("a door",), ("it opens",), rollback="cas"))
    story.happens(VerdictSaid(story.leg, "failed", "no hinges", report))
    assert story.names(last=3) == ["criterion.checked", "blocker.named", "handoff.requested"]
    story.happens(NoteSaid(story.leg, "a later note")).happens(Restarted(leg_lives=True))
    story.says("ready").quiet()
    assert story.names(last=2) == ["handoff.closed", "handoff.begun"]
    record = HandoffHistory(story.events).records[0]
    assert (record.status, record.note) == (HandoffStatus.FAILED, "no hinges")
    assert [(one.criterion, one.verdict, one.by) for one in record.checked] == [("it opens", "unmet", "bob")]
    assert [(one.kind, one.requires) for one in record.blockers] == [("access", "the key")]
    closing = record.closing
    assert closing is not None
    assert (closing.by, closing.deliverables, closing.incomplete) == ("bob", ("a frame",), ("the hinges",))
    assert (closing.questions, closing.suggested_next) == (("which lock?",), "buy one")


def test_a_rejected_handoff_is_rolled_back_and_recorded_as_rejected() -> None:
    """Nobody worked on it: that is not the same as having failed at it."""
    story = made(Terms(rollback="cas", deliverables=("a door",)))
    rejected = story.handoff.id
    story.happens(VerdictSaid(story.leg, "rejected", "not my trade"))
    assert "bob hands over to cas when its turn is over: bob rejected it" in render_message(
        story.now, NOW.tzinfo
    )
    story.says("ready").quiet()
    closed = story.events[-2].body
    assert isinstance(closed, HandoffClosed)
    assert (closed.verdict, closed.by, story.begun.rolls_back) == ("rejected", "bob", rejected)
    assert records(story)[rejected] is HandoffStatus.REJECTED


def test_a_rejection_without_a_rollback_agent_is_only_recorded() -> None:
    """The agent stays in charge; its user decides."""
    story = made(Terms(("a door",)))
    story.happens(VerdictSaid(story.leg, "rejected", "not my trade"))
    assert story.names(last=1) == ["handoff.closed"]
    assert list(records(story).values()) == [HandoffStatus.REJECTED]


def test_what_was_accepted_is_not_rejected() -> None:
    """From then on it can only fail."""
    story = made(NO_TERMS)
    story.happens(AcceptSaid(story.leg))
    with pytest.raises(WrongUseError, match="accepted the handoff already"):
        story.happens(VerdictSaid(story.leg, "rejected", "no"))


def test_an_unmet_criterion_keeps_a_handoff_open_for_its_agent_too() -> None:
    """What relay ran counts before its word."""
    story = made(Terms(("a door",), checks=("make test",)))
    ran = CriterionChecked(story.handoff.id, "make test", "unmet", "run: exit status 2", "relay")
    report = HandoffReport(criteria=(CriterionReport("1", met=True, how="read it"),))
    story.happens(VerdictSaid(story.leg, "completed", "", report, (ran,)))
    assert story.names(last=1) == ["criterion.checked"]
    assert list(records(story).values()) == [HandoffStatus.WORKING]


def test_a_note_is_kept_for_whoever_takes_over() -> None:
    """At a limit the agent cannot be asked any more."""
    story = at_work().happens(NoteSaid("L1", "half done", "the other half"))
    assert story.now.note is not None
    assert (story.now.note.text, story.now.note.next_step) == ("half done", "the other half")
