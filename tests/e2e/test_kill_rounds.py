"""A few rounds of `kill -9` at random moments around a limit; `tests.e2e.kill_rounds` plays many."""

import pytest

from tests.support.kill_round import Blow, Plan, build_plan, play_round
from tests.support.sizes import sized


@pytest.mark.parametrize("number", sized(range(1, 4), [1]))
def test_whoever_is_killed_around_a_limit_the_prompt_reaches_a_successor(number: int) -> None:
    """What the user typed last is in nobody's head at that moment: it must not depend on luck."""
    result = play_round(build_plan(14, number))
    assert (result.how in {"itself", "command"}, result.why) == (True, "")


@pytest.mark.parametrize("victim", ["agent", "holder"])
def test_a_successor_killed_at_its_prompt_is_followed_by_one_that_has_the_packet(victim: str) -> None:
    """Its prompt stands on the screen and the packet is about to come: the window of a few milliseconds."""
    result = play_round(Plan(14, 0, "leg.ready", (Blow(victim, 0.01),)))
    assert (result.how, result.why) == ("itself", "")


@pytest.mark.parametrize("number", range(1, 3))
def test_whoever_is_killed_while_the_next_agent_stands_by_the_prompt_reaches_one(number: int) -> None:
    """It must neither be lost with the standby nor reach two agents, and nothing of the standby is left."""
    result = play_round(build_plan(15, number, standby=True))
    assert (result.how in {"itself", "command"}, result.why) == (True, "")


@pytest.mark.parametrize(
    ("victims", "point"),
    [
        (("daemon",), "standby.starting"),
        (("daemon",), "standby.ready"),
        (("standby",), "standby.starting"),
        (("daemon", "standby"), "standby.ready"),
    ],
)
def test_a_daemon_killed_while_a_standby_stands_loses_nothing(victims: tuple[str, ...], point: str) -> None:
    """The next daemon finds the standby, or what is left of it."""
    blows = tuple(Blow(victim, 0.02) for victim in victims)
    result = play_round(Plan(15, 0, point, blows, standby=True))
    assert (result.how, result.why) == ("itself", "")
