"""Two hundred adoptions around a reset: one program has the conversation at every step."""

from collections import Counter

from agent_relay.domain.state import State
from tests.support.adopted_life import AdoptedLife, begin_adopted
from tests.support.reset_life import play_all


def test_an_adopted_conversation_has_one_owner_around_every_reset() -> None:
    """Its own program goes on by itself at the reset, unseen by whoever took the work over."""
    met = Counter[str]()
    for life in play_all(begin_adopted, _check_end):
        met.update((f"runs={life.runs}", f"ended={life.ended_by_us}", f"went on={life.native.works}"))
        met.update(client.outcome for client in life.clients)
    # Lives that never come to the question would pass whatever the answer is.
    assert min(met.values()) > 20, met
    assert set(met) >= {"refused", "asked", "attached", "runs=True", "runs=False", "ended=True"}


def _check_end(life: AdoptedLife) -> None:
    owners = [one.leg for one in life.processes.values() if one.lives]
    waits = [client for client in life.clients if not client.outcome]
    assert not waits, f"nobody answered {waits} of {life.clients}"
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
