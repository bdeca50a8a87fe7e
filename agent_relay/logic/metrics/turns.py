"""Cuts a native session into turns: one prompt and all that follows."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from agent_relay.logic.metrics.pool import Native
from agent_relay.logic.transcripts.usage.packed import Columns


class Turn(msgspec.Struct, frozen=True, gc=False):
    """One turn. `active_ms` is the time to the last thing it did; `model` is the first that answered.

    `at` is 0 where nothing dates its prompt: then nobody knows how long it took.
    """

    at: int
    active_ms: int
    is_failed: bool
    model: str = ""


def cut_turns(native: Native, answers: Columns, limits: Sequence[int]) -> list[Turn]:
    """The turns in order; one that ended in an error, or at one of the moments of `limits`, has failed.

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
        Turn(start, last - start if start else 0, is_failed, model)
        for start, last, is_failed, model in zip(starts, lasts, failed, models, strict=True)
    ]
