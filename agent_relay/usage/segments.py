"""Cut a native session into turns, and what it did into runs of one owner, model and price.

A turn is one prompt and all that follows it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from agent_relay.transcripts.usage.answer_columns import Columns
from agent_relay.usage._dedupe import Native
from agent_relay.usage.session_work import LegWork, find_leg

QUARTER_MS = 900_000
"""Days in every zone, and prices, change only at a quarter of an hour."""


class WorkOwner(msgspec.Struct, frozen=True):
    """Whose work something was: a `session` and `leg` of ours, or `agent:native-id` for the user's own."""

    session: str
    leg: str
    agent: str


Run = tuple[WorkOwner, int, int]
"""The owner of some answers or turns, the index of the first, and the index after the last."""


class OwnerFinder:
    """Finds whose work a moment of one native session was; `is_plain` if all is `own`, the user's."""

    def __init__(self, legs: Sequence[tuple[WorkOwner, LegWork]], native: Native) -> None:
        name = f"{native.agent}:{native.session}"
        self.own = WorkOwner(name, name, native.agent)
        self._owners = {leg.leg: owner for owner, leg in legs}
        self._legs = [leg for _, leg in legs]
        self.is_plain = not legs

    def __call__(self, at: int) -> WorkOwner:
        """Return the leg at work at that moment; the user's own if none was."""
        leg = find_leg(self._legs, at) if self._legs else None
        return self.own if leg is None else self._owners[leg.leg]


def cut_runs(moments: Sequence[int], models: Sequence[str], find: OwnerFinder, since: int) -> list[Run]:
    """Return the runs from `since` on, each of one model and owner within a quarter of an hour."""
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


class NativeTurn(msgspec.Struct, frozen=True, gc=False):
    """One turn. `active_ms` is the time to the last thing it did; `model` is the first that answered.

    `at` is 0 if nothing dates its prompt: then its length is unknown.
    """

    at: int
    active_ms: int
    is_failed: bool
    model: str = ""


def cut_turns(native: Native, answers: Columns, limits: Sequence[int]) -> list[NativeTurn]:
    """Return the turns in order; those that ended in an error, or at a moment of `limits`, have failed.

    `answers` are the native session's.
    """
    starts = [prompt.at for prompt in native.prompts]
    lasts = list(starts)
    models = [""] * len(starts)
    failed = [False] * len(starts)
    moments, told = answers.at, answers.models
    cuts = [bisect_left(moments, start) for start in starts] + [len(moments)]
    for place, (begin, end) in enumerate(pairwise(cuts)):
        if begin < end:
            lasts[place] = max(moments[begin:end])
            models[place] = told[begin]
        if begin < end and not models[place]:
            models[place] = next((model for model in told[begin:end] if model), "")
    for at in (*(mark.at for mark in native.changes), *(mark.at for mark in native.failures)):
        place = bisect_right(starts, at) - 1
        if place >= 0:
            lasts[place] = max(lasts[place], at)
    for end in (*(mark.at for mark in native.failures), *limits):
        place = bisect_right(starts, end) - 1
        if place >= 0:
            failed[place] = True
    return [
        NativeTurn(start, last - start if start else 0, is_failed, model)
        for start, last, is_failed, model in zip(starts, lasts, failed, models, strict=True)
    ]
