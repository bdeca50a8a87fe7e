"""Cuts what one native session did into pieces, each of one owner, model and price."""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from agent_relay.logic.metrics.legs import LegWork, find_leg
from agent_relay.logic.metrics.pool import Native

QUARTER_MS = 900_000
"""Days in every zone, and prices, begin with a quarter of an hour."""


class Owner(msgspec.Struct, frozen=True):
    """Whose work something was: a `session` and `leg` of ours, or `agent:native-id` for a user's own."""

    session: str
    leg: str
    agent: str


Run = tuple[Owner, int, int]
"""Whose some answers or turns were, the place of the first, and that behind the last."""


class Finder:
    """Tells whose work a moment of one native session was; `is_plain` where all is `own`, the user's."""

    def __init__(self, legs: Sequence[tuple[Owner, LegWork]], native: Native) -> None:
        name = f"{native.agent}:{native.session}"
        self.own = Owner(name, name, native.agent)
        self._owners = {leg.leg: owner for owner, leg in legs}
        self._legs = [leg for _, leg in legs]
        self.is_plain = not legs

    def __call__(self, at: int) -> Owner:
        """Of the leg at work then; the user's own where none was."""
        leg = find_leg(self._legs, at) if self._legs else None
        return self.own if leg is None else self._owners[leg.leg]


def cut_runs(moments: Sequence[int], models: Sequence[str], find: Finder, since: int) -> list[Run]:
    """Those that were asked for, in pieces of one model and owner within a quarter hour."""
    runs, is_plain = list[Run](), find.is_plain and len(set(models)) <= 1
    place, size = bisect_left(moments, since), len(moments)
    while place < size:
        at = moments[place]
        # What nothing dates is of no quarter.
        end = bisect_left(moments, (at // QUARTER_MS + 1) * QUARTER_MS if at else 1, place)
        owner, model = find(at), models[place]
        if not is_plain:
            others = (
                one
                for one in range(place + 1, end)
                if find(moments[one]) is not owner or models[one] != model
            )
            end = next(others, end)
        runs.append((owner, place, end))
        place = end
    return runs
