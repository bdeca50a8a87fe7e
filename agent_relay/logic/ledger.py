"""Rules over the ledger: who rests now, and how a new limit joins what is known."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from agent_relay.domain.ledger import Rest

_UNKNOWN_REST = timedelta(hours=1)
"""How long a limit without a reset counts, unless it is about money: agents say "later", not "never"."""


def find_rest(rests: Sequence[Rest], agent: str, now: datetime) -> Rest | None:
    """The rest `agent` is under at `now`, the one that ends last; `None` where it may work.

    A billing limit without a reset lasts until the user says otherwise; any other one without a reset
    is believed for an hour.
    """
    now_resting = [rest for rest in map(_with_end, rests) if rest.agent == agent and _lasts(rest, now)]
    endless = [rest for rest in now_resting if rest.until is None]
    return endless[0] if endless else max(now_resting, key=lambda rest: rest.until or now, default=None)


def add_rest(rests: Sequence[Rest], new: Rest, now: datetime) -> tuple[Rest, ...]:
    """The ledger with `new`, which replaces what was known of the same agent, model and scope.

    Rests that are over are dropped.
    """
    key = (new.agent, new.model, new.scope)
    kept = [
        rest for rest in rests if (rest.agent, rest.model, rest.scope) != key and _lasts(_with_end(rest), now)
    ]
    return (*kept, new)


def drop_rests(rests: Sequence[Rest], agent: str) -> tuple[Rest, ...]:
    """The ledger after the user said that `agent` may work again."""
    return tuple(rest for rest in rests if rest.agent != agent)


def _with_end(rest: Rest) -> Rest:
    if rest.until is not None or rest.scope == "billing":
        return rest
    return replace(rest, until=rest.seen_at + _UNKNOWN_REST)


def _lasts(rest: Rest, now: datetime) -> bool:
    return rest.until is None or rest.until > now
