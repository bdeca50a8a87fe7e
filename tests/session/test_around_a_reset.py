"""Two hundred resets with everything around them in random order: one owner, never two, never none."""

import heapq
from datetime import timedelta
from itertools import pairwise
from random import Random

from agent_relay.domain.events.session import LegContinues, ReturnOffered, SessionRested, SessionWoke
from agent_relay.domain.limits import NO_QUIET_HOURS
from agent_relay.domain.state import State
from tests.support.reset_life import QUIET, RESET, Life, play_all


def _begin(seed: int) -> Life:
    """A life with its wishes, and what happens to it around the reset."""
    random = Random(seed)  # noqa: S311 - which of many orders is tried, and the same one again
    life = Life(
        random,
        resume=random.random() < 0.4,
        quiet=QUIET if random.random() < 0.3 else NO_QUIET_HOURS,
        has_timer=random.random() < 0.7,
        timer_fails=random.random() < 0.2,
    )
    if not life.resume and random.random() < 0.3:
        life.agent_may = False
    keys = random.choices(
        ["wait", "not", "enter", "escape", "prompt", "bob"], [6, 1, 1, 1, 2, 1], k=random.randint(0, 3)
    )
    for key in keys:
        at = RESET + timedelta(seconds=random.uniform(-3600, 300))
        heapq.heappush(life.agenda, (at, next(life.order), lambda key=key: life.press(key)))
    for _ in range(random.choice([0, 0, 1, 2])):
        at = RESET + timedelta(seconds=random.choice([random.uniform(-600, 600), random.uniform(-5, 120)]))
        heapq.heappush(life.agenda, (at, next(life.order), life.crash))
    return life


def test_there_is_one_owner_around_every_reset() -> None:
    """An agent and relay that both go on at once spoil a tree; neither, and a night is lost."""
    play_all(_begin, _check_end)


def _check_end(life: Life) -> None:
    session, bodies = life.story.now, [event.body for event in life.story.events]
    # Once for each reset, and not after somebody did something about it.
    assert len(life.began_alone) <= 1 or life.touched, f"both went on: {life.began_alone}"
    told = [(one.leg, one.at) for one in bodies if isinstance(one, LegContinues)]
    assert all(one != next_one for one, next_one in pairwise(told)), "a timer was decided on twice"
    offers = [
        one
        for one in bodies
        if isinstance(one, ReturnOffered) or (isinstance(one, SessionWoke) and one.offers)
    ]
    rests = sum(isinstance(one, SessionRested) for one in bodies)
    assert len(offers) <= 1 + rests, "offered again and again"
    consents = life.resume or session.agreed
    works = any(one.works for one in life.processes.values() if one.lives)
    if consents and not life.touched:
        assert works, "nobody went on although that was agreed to"
    if not works:
        assert session.state is not State.HANDING_OFF
