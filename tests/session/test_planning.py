"""Whom a handoff would go to, told without anything happening."""

from datetime import timedelta

from agent_relay.domain.inputs import HandoffAsked
from agent_relay.domain.session import Terms
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.interventions import build_handoff_plan
from tests.session.story import NOW, RESTS, Story, made


def verdicts(plan: dict[str, object]) -> list[tuple[object, object, object]]:
    agents = plan["agents"]
    assert isinstance(agents, list)
    return [(row["agent"], row["verdict"], row["why"]) for row in agents]


def test_everybody_of_the_order_is_told_of() -> None:
    """Also those who come after the next one: they are why people ask."""
    story = Story(("ann", "bob", "cas", "dan")).start("bob")
    story.availability["ann"] = RESTS
    plan = build_handoff_plan(story.now, story.world())
    assert verdicts(plan) == [
        ("ann", "skipped", "rests until 19:20"),
        ("bob", "at work", ""),
        ("cas", "next", ""),
        ("dan", "later", "cas comes before it"),
    ]
    assert (plan["successor"], plan["handoff"], plan["earliest"]) == (
        "cas",
        "",
        (NOW + timedelta(hours=1)).isoformat(),
    )


def test_who_worked_last_is_not_at_work() -> None:
    """In a session that is over nobody is: saying so of anyone sends people looking for a process."""
    story = Story(("ann", "bob")).start("bob")
    story.availability["ann"] = RESTS
    plan = build_handoff_plan(story.gone("exited").now, story.world())
    assert verdicts(plan) == [
        ("ann", "skipped", "rests until 19:20"),
        ("bob", "last", "it worked last; no agent is at work now"),
    ]


def test_what_is_needed_is_looked_for() -> None:
    """What was expected of the agent at work is expected of its successor."""
    story = made()
    after = replace(story.now.done[-1], terms=Terms(needs=("shell",)))
    session = replace(story.now, done=(after,))
    plan = build_handoff_plan(session, story.world())
    assert (plan["successor"], plan["needs"]) == ("", ["shell"])
    story.availability["cas"] = Availability(installed=True, capabilities=frozenset({"shell"}))
    assert build_handoff_plan(session, story.world())["successor"] == "cas"
    assert build_handoff_plan(session, story.world(), needs=("vision",))["successor"] == ""


def test_a_handoff_under_way_is_named() -> None:
    """A second one would be refused."""
    story = Story().start().happens(HandoffAsked("bob"))
    assert story.now.handoff is not None
    assert build_handoff_plan(story.now, story.world())["handoff"] == story.now.handoff.id
