"""The records of handoffs, read off journals that the state machine itself wrote."""

from datetime import timedelta

from agent_relay.domain.events.session import Event, LegStarting, SessionCreated, Unknown
from agent_relay.domain.events.work import HandoffBegun, HandoffConfirmed
from agent_relay.domain.inputs import (
    CancelAsked,
    CloseAsked,
    HandoffAsked,
    LegGone,
    Published,
    PublishFailed,
    RetryAsked,
    StopAsked,
)
from agent_relay.domain.session import Step, Terms
from agent_relay.domain.values import replace
from agent_relay.session.handoff_history import (
    DurationEstimate,
    HandoffHistory,
    HandoffRecord,
    HandoffStatus,
    estimate_durations,
)
from tests.session.story import HERE, NOW, RESTS, TERMS, Story, asked, made


def statuses(story: Story) -> list[HandoffStatus]:
    return [record.status for record in HandoffHistory(story.events).records]


def test_a_handoff_with_expectations_stays_open_until_somebody_judges_it() -> None:
    """That the successor began to work does not mean that the door hangs."""
    story = made()
    (record,) = HandoffHistory(story.events).records
    assert (record.status, record.is_open, record.step) == (HandoffStatus.WORKING, True, Step.DELIVERED)
    assert (record.parent, record.depth, record.packet, record.text_path) == ("", 1, "P1", "1.md")
    assert record.terms == TERMS
    assert [moment.event for moment in record.trail] == [
        "handoff.begun",
        "handoff.stopped",
        "packet.published",
        "leg.starting",
        "leg.started",
        "handoff.delivered",
        "handoff.confirmed",
    ]
    story.happens(CloseAsked(record.id, "completed", "it hangs"))
    (record,) = HandoffHistory(story.events).records
    assert (record.status, record.note, record.closed_at) == (HandoffStatus.COMPLETED, "it hangs", NOW)
    assert record.trail[-1].text == "completed; it hangs"


def test_a_successor_that_is_gone_is_not_said_to_work() -> None:
    """What was expected of it is still not confirmed; who goes on with the session works again."""
    story = made().gone("exited")
    assert statuses(story) == [HandoffStatus.UNJUDGED]
    (record,) = HandoffHistory(story.events).records
    assert record.is_open


def replace_why(event: Event) -> Event:
    """As an older version wrote the line."""
    body = event.body
    return replace(event, body=replace(body, lane_why="")) if isinstance(body, LegStarting) else event


def lanes(story: Story) -> list[str]:
    return [record.lane for record in HandoffHistory(story.events).records]


def test_a_handoff_says_by_which_lane_the_work_was_passed_on_and_why() -> None:
    """Who comes back knows what it said; who is new has only the packet."""
    story = Story().start().says("busy").limit().take_over()
    story.availability["ann"] = HERE
    for agent in ("ann", "bob"):
        story.happens(HandoffAsked(agent)).take_over()
    assert lanes(story) == [
        "read the packet: it had no conversation here",
        "resumed its own conversation with what changed: it worked here before",
        "read the packet: the id of its conversation here is unknown",
    ]
    old = [replace_why(event) for event in story.events]
    assert [record.lane for record in HandoffHistory(old).records] == [
        "read the packet",
        "resumed its own conversation with what changed",
        "read the packet",
    ]
    assert lanes(asked(Step.STOPPED)) == [""]


def test_a_level_of_effort_is_passed_on_to_an_agent_that_has_it() -> None:
    """The record says so: it is an argument that nobody typed for this agent."""
    story = Story().start().says("busy").limit().gone()
    handoff = story.handoff.id
    story.happens(Published(handoff, "P1", 1, "1.json", "1.md", "f"), efforts={"bob": "low", "cas": "high"})
    (record,) = HandoffHistory(story.events).records
    assert (record.effort, story.now.legs[-1].effort, story.now.legs[0].effort) == ("low", "low", "")


def test_one_without_expectations_is_done_when_it_is_made() -> None:
    """Nobody has to come back for an ordinary failover."""
    assert statuses(made(Terms())) == [HandoffStatus.DONE]
    assert [record.is_open for record in HandoffHistory(asked(Step.SPAWNED).events).records] == [True]


def test_what_is_passed_on_is_open_once() -> None:
    """After the next limit it is the next agent that owes the door."""
    story = made()
    story.limit().gone().published()
    assert statuses(story) == [HandoffStatus.UNJUDGED, HandoffStatus.UNDER_WAY]
    story.spawned().says("ready").delivered().says("busy")
    assert statuses(story) == [HandoffStatus.PASSED_ON, HandoffStatus.WORKING]
    first, second = HandoffHistory(story.events).records
    assert (second.parent, second.depth) == (first.id, 2)


def test_a_failed_verdict_names_why_nobody_rolls_back() -> None:
    """The trail is what is read when people ask how that could happen."""
    story = made()
    story.availability["cas"] = RESTS
    story.happens(CloseAsked(story.handoff.id, "failed"))
    (record,) = HandoffHistory(story.events).records
    assert (record.status, record.trail[-1].text) == (HandoffStatus.FAILED, "failed; cas: rests until 19:20")


def test_a_cancelled_one_can_be_seen_on_its_way_and_at_its_end() -> None:
    """Cancelling takes as long as an agent takes to leave."""
    story = asked(Step.SPAWNED)
    story.happens(CancelAsked(story.handoff.id, "no"))
    assert statuses(story) == [HandoffStatus.CANCELLING]
    story.gone()
    (record,) = HandoffHistory(story.events).records
    assert (record.status, record.note, record.ended_at) == (HandoffStatus.CANCELLED, "no", NOW)
    story.happens(RetryAsked(record.id))
    (record,) = HandoffHistory(story.events).records
    assert (record.status, record.retries, record.note) == (HandoffStatus.UNDER_WAY, 1, "")
    assert len(record.legs) == 2
    story.happens(StopAsked("by hand"))
    (record,) = HandoffHistory(story.events).records
    assert (record.status, record.note) == (HandoffStatus.FAILED, "by hand")


def test_a_failed_one_is_followed_by_its_children() -> None:
    """The tree shows who was tried before."""
    story = Story().start().happens(HandoffAsked("bob")).gone().published()
    story.happens(LegGone(story.leg, "unstarted", why="not installed"))
    first, second = HandoffHistory(story.events).records
    assert (first.status, first.note, first.step) == (HandoffStatus.FAILED, "not installed", Step.SPAWNING)
    assert (second.parent, second.depth, second.status) == (first.id, 2, HandoffStatus.UNDER_WAY)
    story.happens(PublishFailed(second.id, "full"))
    assert statuses(story) == [HandoffStatus.FAILED, HandoffStatus.FAILED]


def test_journals_of_older_versions_are_counted_as_they_stand() -> None:
    """They say neither parent nor depth; the order of their lines does."""
    bodies = (
        SessionCreated("S", "/r", "/r"),
        LegStarting("L1", "ann", 1),
        HandoffBegun("H1", "L1", "ann", "bob", "manual"),
        HandoffConfirmed("H1", "L2"),
        HandoffBegun("H2", "L2", "bob", "cas", "manual"),
        HandoffConfirmed("H9", "L2"),
        Unknown("later.event", {}),
    )
    events = [Event(number, NOW, 1, body) for number, body in enumerate(bodies, start=1)]
    registry = HandoffHistory(events)
    assert [(record.id, record.parent, record.depth) for record in registry.records] == [
        ("H1", "", 1),
        ("H2", "H1", 2),
    ]
    assert [(leg.agent, leg.handoff) for leg in registry.legs] == [("ann", "")]


def test_a_duration_is_estimated_by_the_median_of_enough_past_ones() -> None:
    """Two handoffs tell nothing of a third; what failed does not tell how long success takes."""
    made_at = [10.0, 1.0, 4.0, 2.0]
    records = [
        HandoffRecord(
            f"H{number}",
            "L1",
            "ann",
            "bob",
            "manual",
            NOW,
            step=Step.DELIVERED,
            status=HandoffStatus.COMPLETED if number else HandoffStatus.FAILED,
            ended_at=NOW + timedelta(seconds=took_s),
            closed_at=NOW + timedelta(seconds=took_s + 60 * number),
        )
        for number, took_s in enumerate(made_at)
    ]
    assert estimate_durations(records, "bob") == DurationEstimate(2.0, 120.0, 4, 3)
    assert estimate_durations(records[:3], "bob") == DurationEstimate(4.0, None, 3, 2)
    assert estimate_durations(records, "cas") == DurationEstimate(None, None, 0, 0)
