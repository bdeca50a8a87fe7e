"""What is expected of a handoff, who judges it, and who takes over when it fails."""

import pytest

from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import CriterionChecked, HandoffClosed
from agent_relay.domain.inputs import (
    CancelAsked,
    CloseAsked,
    DeliverFailed,
    HandoffAsked,
    LegGone,
    PromptTaken,
    Restarted,
    StopAsked,
)
from agent_relay.domain.protocol.handoff_report import BlockerReport, CriterionReport, HandoffReport
from agent_relay.domain.session import Step, Terms
from agent_relay.domain.state import State
from agent_relay.session.decision import Availability
from agent_relay.session.fold import fold_event
from agent_relay.session.handoff_history import HandoffHistory
from tests.session.story import HERE, NOW, RESTS, TERMS, Story, asked, made


def test_what_was_expected_is_passed_on_until_somebody_judges_it() -> None:
    """A limit in between is no reason to forget the door."""
    story = made().limit()
    assert story.begun.deliverables == ("a door",)
    assert (story.begun.parent, story.begun.depth) == (story.now.done[0].id, 2)
    story = made()
    story.happens(CloseAsked(story.handoff.id, "completed", "hangs")).limit()
    assert (story.begun.deliverables, story.begun.rollback) == ((), "")
    story = made().happens(HandoffAsked("cas", terms=Terms(("a roof",))))
    assert (story.begun.deliverables, story.begun.criteria) == (("a roof",), ())
    story = made().happens(HandoffAsked("cas"))
    story.happens(CancelAsked(story.handoff.id)).gone().published().happens(HandoffAsked("ann"))
    assert story.begun.deliverables == ("a door",)
    story = asked(Step.BEGUN)
    story.happens(CancelAsked(story.handoff.id)).gone().published().happens(HandoffAsked("cas"))
    assert story.begun.deliverables == ()


def test_the_rollback_agent_is_told_how_far_the_work_came() -> None:
    """It stood in `handoff show` alone, and half of the work was done twice."""
    story = made()
    report = HandoffReport(
        completed=("the frame", "the hinges"),
        incomplete=("the lock",),
        criteria=(CriterionReport("it opens", met=False, how="pushed it"),),
        blockers=(BlockerReport("access", "no key", "the key"),),
        suggested_next="ask for the key",
    )
    story.happens(CloseAsked(story.handoff.id, "failed", "gave up", report=report))
    assert story.begun.why == (
        "gave up; done: the frame, the hinges; not done: the lock; not met: it opens;"
        " in the way: no key (needs the key); suggested next: ask for the key"
    )


def test_a_failure_hands_over_to_the_rollback_agent_with_the_questions() -> None:
    """What was achieved until now is in its packet; it is not asked to roll back itself again."""
    story = made()
    failed = story.handoff.id
    story.happens(CloseAsked(failed, "failed", "it does not open"))
    assert story.names(last=2) == ["handoff.closed", "handoff.begun"]
    found = story.begun
    assert (found.to_agent, found.from_agent, found.reason, found.why) == (
        "cas",
        "bob",
        "failure",
        "it does not open",
    )
    assert (found.rolls_back, found.rollback, found.questions) == (failed, "", ("why?",))
    assert found.deliverables == ("a door",)
    with pytest.raises(WrongUseError, match="was judged already"):
        story.happens(CloseAsked(failed, "completed"))


@pytest.mark.parametrize("case", ["rests", "at work", "gone on", "handing over", "stopping"])
def test_a_rollback_agent_that_cannot_take_over_is_said(case: str) -> None:
    """The verdict stands all the same, and says why nobody came."""
    story = made(Terms(("a door",), rollback="bob")) if case == "at work" else made()
    failed, why = story.handoff.id, ""
    match case:
        case "rests":
            story.availability["cas"] = RESTS
            why = "cas: rests until 19:20"
        case "at work":
            why = "bob: at work already"
        case "gone on":
            story.gone("exited").happens(HandoffAsked("bob")).published().spawned().says("ready")
            story.delivered().says("busy")
            why = "cas: the session has gone on under bob"
        case "handing over":
            story.happens(HandoffAsked("ann"))
            why = "cas: the session is handing-off"
        case _:
            story.happens(StopAsked())
            why = "cas: the session is stopping"
    story.happens(CloseAsked(failed, "failed"))
    closed = story.events[-1].body
    assert isinstance(closed, HandoffClosed)
    assert closed.skipped == (why,)


def test_a_handoff_that_was_given_its_packet_may_be_judged() -> None:
    """It is made as far as anybody can see."""
    story = asked(Step.DELIVERED)
    story.happens(CloseAsked(story.handoff.id, "completed"))
    assert story.names(last=2) == ["handoff.confirmed", "handoff.closed"]
    story = asked(Step.SPAWNED)
    with pytest.raises(WrongUseError, match="is under way"):
        story.happens(CloseAsked(story.handoff.id, "completed"))
    story.happens(CancelAsked(story.handoff.id)).gone()
    with pytest.raises(WrongUseError, match="was cancelled already"):
        story.happens(CloseAsked(story.handoff.id, "failed"))


def test_a_successor_that_cannot_start_gives_way_to_the_rollback_agent() -> None:
    """One crash is bad luck; after the second the named one is asked, before the others of the order."""
    story = (
        Story(("ann", "dan", "bob", "cas"))
        .start()
        .happens(HandoffAsked("bob", terms=TERMS))
        .gone()
        .published()
    )
    story.happens(LegGone(story.leg, "unstarted", why="no")).published()
    assert story.begun.to_agent == "bob"
    story.happens(LegGone(story.leg, "unstarted", why="no"))
    assert (story.begun.to_agent, story.begun.rollback, story.begun.depth) == ("cas", "", 3)
    assert story.begun.rolls_back == story.begun.parent


def test_a_successor_lost_before_it_works_is_a_failure_unless_a_person_had_it_leave() -> None:
    """What it was handed is in nobody else's hands: another process of it is asked first."""
    story = asked(Step.DELIVERED).gone("lost")
    assert story.begun.to_agent == "bob"
    assert asked(Step.DELIVERED).gone("exited").now.state is State.ENDED
    assert asked(Step.DELIVERED, Terms()).gone("lost").begun.to_agent == "bob"
    assert asked(Step.DELIVERED, Terms()).gone("exited").now.state is State.ENDED


def test_a_delivery_that_fails_stays_where_the_rollback_agent_rests() -> None:
    """The successor lives and is in charge; the person is told."""
    story = asked(Step.SPAWNED).says("ready")
    story.availability["cas"] = RESTS
    story.happens(DeliverFailed(story.handoff.id, story.leg, "typing"))
    assert story.names(last=1) == ["handoff.failed"]
    assert story.now.agent == "bob"


def test_capabilities_are_checked_before_anything_happens() -> None:
    """An agent that cannot run a shell is no successor for work that needs one."""
    story = Story().start()
    story.availability["cas"] = Availability(installed=True, capabilities=frozenset({"edit", "shell"}))
    with pytest.raises(NobodyAvailableError, match="bob: its adapter does not declare shell"):
        story.happens(HandoffAsked("bob", terms=Terms(needs=("shell",))))
    story.happens(HandoffAsked("", terms=Terms(needs=("shell", "edit"))))
    assert story.begun.to_agent == "cas"
    story.availability["bob"] = HERE


def test_a_rollback_is_begun_by_the_next_daemon() -> None:
    """The verdict was written, and the power went before anybody was called."""
    story = made()
    failed = story.handoff.id
    before = len(story.events)
    story.happens(CloseAsked(failed, "failed", "it does not open"))
    kept = story.events[: before + 1]
    story.refold(kept).happens(Restarted(leg_lives=True))
    assert (story.begun.to_agent, story.begun.why, story.begun.rolls_back) == (
        "cas",
        "it does not open",
        failed,
    )
    story.availability["cas"] = RESTS
    story.refold(kept).happens(Restarted(leg_lives=True))
    assert story.events == kept


def test_a_rollback_nobody_began_is_forgotten_once_the_successor_works() -> None:
    """A restart next week must not take the work away from whoever does it."""
    story = asked(Step.SPAWNED).says("ready")
    story.availability["cas"] = RESTS
    story.happens(DeliverFailed(story.handoff.id, story.leg, "typing"))
    assert story.now.due is not None
    story.happens(PromptTaken(story.leg))
    assert story.now.due is None
    story.availability["cas"] = HERE
    events = list(story.events)
    assert story.happens(Restarted(leg_lives=True)).events == events


def test_a_verdict_on_what_the_journal_does_not_know_changes_nothing() -> None:
    """Somebody edited it."""
    story = made()
    session = fold_event(story.now, Event(99, NOW, 1, HandoffClosed("H0", "failed")))
    assert session is not None
    assert session.due is None


def test_a_handoff_is_not_completed_while_a_criterion_is_unmet() -> None:
    """The evidence is kept; that it counts all the same is a person's word."""
    story = made(Terms(criteria=("it opens",), checks=("make test",)))
    name = story.handoff.id
    failed = CriterionChecked(name, "make test", "unmet", "run: exit status 2", "relay")
    said = HandoffReport(criteria=(CriterionReport("1", met=True, how="pushed it"),))
    story.happens(CloseAsked(name, "completed", report=said, checked=(failed,)))
    assert story.names(last=2) == ["criterion.checked", "criterion.checked"]
    assert (story.now.closed, HandoffHistory(story.events).records[0].is_open) == ((), True)
    story.happens(CloseAsked(name, "completed", checked=(failed,), anyway=True))
    assert story.now.closed == (name,)
    (record,) = HandoffHistory(story.events).records
    assert [(one.criterion, one.verdict, one.how, one.by) for one in record.checked] == [
        ("it opens", "met", "pushed it", ""),
        ("make test", "unmet", "run: exit status 2", "relay"),
    ]


def test_what_relay_ran_counts_before_words() -> None:
    """An agent may be mistaken about its own tests; what nobody could run is its word again."""
    story = made(Terms(checks=("make test", "make lint")))
    name = story.handoff.id
    checked = (
        CriterionChecked(name, "make test", "unmet", "run: exit status 2", "relay"),
        CriterionChecked(name, "make lint", "unchecked", "not run", "relay"),
    )
    words = tuple(CriterionReport(one, met=True, how="ran it") for one in ("make test", "2", "it shines"))
    story.happens(CloseAsked(name, "failed", by="bob", report=HandoffReport(criteria=words), checked=checked))
    (record,) = HandoffHistory(story.events).records
    assert [(one.criterion, one.verdict, one.by) for one in record.checked] == [
        ("make test", "unmet", "relay"),
        ("make lint", "met", "bob"),
        ("it shines", "met", "bob"),
    ]
    story, wrong = made(), HandoffReport(criteria=(CriterionReport("3", met=True, how="ran it"),))
    with pytest.raises(WrongUseError, match="there is no criterion 3"):
        story.happens(CloseAsked(story.handoff.id, "completed", report=wrong))


def test_a_verdict_carries_what_was_reported() -> None:
    """Whoever goes on reads what is done, what is not, and what stands in the way."""
    story = made()
    report = HandoffReport(
        deliverables=("door.py",),
        completed=("the frame",),
        incomplete=("the lock",),
        blockers=(BlockerReport("access", "no key", "the key of the shed"),),
        questions=("which lock?",),
        suggested_next="ask for the key",
    )
    story.happens(CloseAsked(story.handoff.id, "failed", "no key", "bob", report))
    record = HandoffHistory(story.events).records[0]
    closing = record.closing
    assert closing is not None
    assert (closing.by, closing.deliverables, closing.completed, closing.incomplete) == (
        "bob",
        ("door.py",),
        ("the frame",),
        ("the lock",),
    )
    assert (closing.questions, closing.suggested_next) == (("which lock?",), "ask for the key")
    assert [(one.kind, one.text, one.requires) for one in record.blockers] == [
        ("access", "no key", "the key of the shed")
    ]
