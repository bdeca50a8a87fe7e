"""Rules over the ledger: which agent rests now, and how a new limit joins what is known."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from agent_relay.domain.signal import Rest
from agent_relay.domain.values.rest_end import find_end, is_lasting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.domain.effects import NoteRest
    from agent_relay.session.outcome import DecisionContext

_UNDER_WAY = timedelta(minutes=1)


def find_rest(rests: Sequence[Rest], agent: str, now: datetime) -> Rest | None:
    """Return the rest `agent` is under at `now`, the one that ends last; `None` if it may work.

    A billing limit without a reset lasts until the user says otherwise; any other one without a reset
    is believed for an hour. One noted by a clock that was far ahead is over.
    """
    now_resting = [rest for rest in map(_with_end, rests) if rest.agent == agent and _lasts(rest, now)]
    endless = [rest for rest in now_resting if rest.until is None]
    return endless[0] if endless else max(now_resting, key=lambda rest: rest.until or now, default=None)


def add_rest(rests: Sequence[Rest], new: Rest, now: datetime) -> tuple[Rest, ...]:
    """Return the ledger with `new`, which replaces what was known of the same agent, model and scope.

    Rests that are over are dropped.
    """
    key = (new.agent, new.model, new.scope)
    kept = [
        rest for rest in rests if (rest.agent, rest.model, rest.scope) != key and _lasts(_with_end(rest), now)
    ]
    return (*kept, new)


def end_rests(rests: Sequence[Rest], agent: str, model: str, answered_at: datetime) -> tuple[Rest, ...]:
    """Return the ledger after `agent` answered on `model`, empty if that is unknown.

    A request that was under way when the limit was met may still be answered, so that only an answer well
    after it ends a rest. An answer of one model does not end another's limit, and none ends a user's budget.
    """
    return tuple(
        rest
        for rest in rests
        if rest.agent != agent
        or rest.scope == "budget"
        or rest.model not in ("", model)
        or (rest.scope == "model" and not rest.model)
        or answered_at - rest.seen_at < _UNDER_WAY
    )


def include_rest(world: "DecisionContext", note: "NoteRest") -> "DecisionContext":
    """Return `world` with that rest included: it may not be written to the ledger yet."""
    new = Rest(note.agent, note.model, note.scope, note.until, note.evidence, seen_at=world.now)
    before, rest = world.availability.get(note.agent), find_rest((new,), note.agent, world.now)
    if before is None or rest is None:
        return world
    state = replace(before, resting=True, rests_until=rest.until, scope=rest.scope)
    return replace(world, availability={**world.availability, note.agent: state})


def drop_rests(rests: Sequence[Rest], agent: str) -> tuple[Rest, ...]:
    """Return the ledger after the user said that `agent` may work again."""
    return tuple(rest for rest in rests if rest.agent != agent)


def _with_end(rest: Rest) -> Rest:
    return replace(rest, until=find_end(rest.until, rest.scope, rest.seen_at))


def _lasts(rest: Rest, now: datetime) -> bool:
    return is_lasting(rest.until, rest.seen_at, now)
