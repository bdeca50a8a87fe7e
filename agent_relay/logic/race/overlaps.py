"""Where two runners touch the same place, told early: one of the two will not fit on top of the other."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from agent_relay.domain.race import Overlap
from agent_relay.logic.race.changes import Change, Kind, Span


def find_overlaps(changes: Mapping[int, Sequence[Change]]) -> list[Overlap]:
    """Every path that two runners touch in the same place, by runner's number; one entry for each pair."""
    found = []
    for first, second in combinations(sorted(changes), 2):
        theirs = {change.path: change for change in changes[second]}
        for ours in changes[first]:
            other = theirs.get(ours.path)
            what = "" if other is None else _tell(ours, other)
            if what:
                found.append(Overlap(first, second, ours.path, what))
    return found


def _tell(ours: Change, theirs: Change) -> str:
    """What the two have in common; empty where they do not meet, or both deleted it."""
    kinds = (ours.kind, theirs.kind)
    if kinds == (Kind.DELETED, Kind.DELETED):
        return ""
    if Kind.DELETED in kinds:
        return "one deletes it, the other changes it"
    same = ", to the same contents" if ours.blob == theirs.blob else ""
    if kinds == (Kind.ADDED, Kind.ADDED):
        return f"both add it{same}"
    if not ours.spans or not theirs.spans:
        return f"both change it as a whole{same}"
    shared = list(_find_shared(ours.spans, theirs.spans))
    return f"both change {_render(shared)}{same}" if shared else ""


def _find_shared(ours: Sequence[Span], theirs: Sequence[Span]) -> Iterator[Span]:
    """The parts of the base both touch, in order; both lists are in order, too."""
    one, other = 0, 0
    while one < len(ours) and other < len(theirs):
        shared = _intersect(ours[one], theirs[other])
        if shared is not None:
            yield shared
        if ours[one].last <= theirs[other].last:
            one += 1
        else:
            other += 1


def _intersect(ours: Span, theirs: Span) -> Span | None:
    """Lines both replace; the place of an insertion that lies within or beside the other's lines."""
    if ours.is_insertion or theirs.is_insertion:
        point = ours if ours.is_insertion else theirs
        other = theirs if ours.is_insertion else ours
        return point if other.first - 1 <= point.last <= other.last else None
    first, last = max(ours.first, theirs.first), min(ours.last, theirs.last)
    return Span(first, last) if first <= last else None


def _render(spans: Sequence[Span]) -> str:
    """`line 3`, `lines 3-7 and 12`, or the line below which both insert."""
    lines = [span for span in spans if not span.is_insertion]
    if not lines:
        places = " and ".join(dict.fromkeys(str(span.last) for span in spans))
        return f"what follows line {places}"
    parts = [str(span.first) if span.first == span.last else f"{span.first}-{span.last}" for span in lines]
    many = len(parts) > 1 or lines[0].first != lines[0].last
    return f"line{'s' if many else ''} {' and '.join(parts)}"
