"""Two hundred adoptions around a reset: one program has the conversation at every step."""

from collections import Counter

import pytest

from agent_relay.domain.state import State
from tests.support.adopted_life import AdoptedLife, begin_adopted

RUNS = 200


@pytest.mark.parametrize("block", range(4))
def test_an_adopted_conversation_has_one_owner_around_every_reset(block: int) -> None:
    """Its own program goes on by itself at the reset, unseen by whoever took the work over."""
    for seed in range(block * RUNS // 4, (block + 1) * RUNS // 4):
        life = begin_adopted(seed)
        try:
            life.run()
            _check_end(life)
        except AssertionError as error:
            lines = [f"{one.body.name} {one.body}"[:150] for one in life.story.events]
            asked = [f"{one.agent} force={one.force}: {one.outcome}" for one in life.clients]
            raise AssertionError("\n".join([f"seed {seed}: {error}", *asked, *lines])) from error


def test_the_runs_meet_what_adoption_has_to_decide() -> None:
    """Runs that never come to the question would pass whatever the answer is."""
    met = Counter[str]()
    for seed in range(RUNS):
        life = begin_adopted(seed)
        runs = life.native.lives
        life.run()
        met[f"runs={runs}"] += 1
        met[f"ended={life.ended_by_us}"] += 1
        met[f"went on={life.native.works}"] += 1
        met.update(client.outcome for client in life.clients)
    assert min(met.values()) > 20, met
    assert set(met) >= {"refused", "asked", "attached", "runs=True", "runs=False", "ended=True"}


def _check_end(life: AdoptedLife) -> None:
    owners = [one.leg for one in life.processes.values() if one.lives]
    waits = [client for client in life.clients if not client.outcome]
    assert not waits, f"nobody answered {waits}"
    took = [client for client in life.clients if client.outcome in {"asked", "attached"}]
    if took and not owners:
        # A successor that could not stay is waited for, and says until when.
        assert life.story.now.state is State.RESTING
        assert life.story.now.rested_until
    if not took:
        assert owners == (["native"] if life.runs else []), "nobody took over from a program that is gone"
    if life.runs and not life.ended_by_us:
        assert owners == ["native"]
    assert life.ended_by_us is False or owners, "its program was ended, and nobody has its work"
