"""Two runners at the same lines are noticed, two at different ones are left alone."""

from dataclasses import replace

import pytest

from agent_relay.domain.race import Overlap
from agent_relay.logic.race.changes import Change, Kind, Span
from agent_relay.logic.race.overlaps import find_overlaps


def changed(*spans: Span, blob: str = "ours") -> Change:
    return Change("a.py", Kind.CHANGED, blob, spans)


ADDED, DELETED = (
    Change("a.py", Kind.ADDED, "x", (Span(1, 0),)),
    Change("a.py", Kind.DELETED, "0", (Span(1, 9),)),
)
BINARY = Change("a.py", Kind.CHANGED, "b")


@pytest.mark.parametrize(
    ("ours", "theirs", "what"),
    [
        (changed(Span(3, 5)), changed(Span(5, 9)), "both change line 5"),
        (changed(Span(3, 7)), changed(Span(1, 9)), "both change lines 3-7"),
        (changed(Span(3, 4), Span(8, 8)), changed(Span(1, 9)), "both change lines 3-4 and 8"),
        (changed(Span(3, 4)), changed(Span(5, 6)), ""),
        (changed(Span(9, 9)), changed(Span(1, 2), Span(4, 4)), ""),
        (changed(Span(6, 5)), changed(Span(6, 5)), "both change what follows line 5"),
        (changed(Span(6, 5)), changed(Span(4, 9)), "both change what follows line 5"),
        (changed(Span(4, 5)), changed(Span(6, 5)), "both change what follows line 5"),
        (changed(Span(6, 5)), changed(Span(8, 9)), ""),
        (changed(Span(6, 5), Span(7, 7)), changed(Span(5, 5), Span(7, 8)), "both change line 7"),
        (
            changed(Span(1, 1), blob="x"),
            changed(Span(1, 1), blob="x"),
            "both change line 1, to the same contents",
        ),
        (ADDED, ADDED, "both add it, to the same contents"),
        (ADDED, Change("a.py", Kind.ADDED, "y"), "both add it"),
        (changed(Span(3, 3)), DELETED, "one deletes it, the other changes it"),
        (DELETED, DELETED, ""),
        (BINARY, changed(Span(3, 3)), "both change it as a whole"),
        (BINARY, BINARY, "both change it as a whole, to the same contents"),
    ],
)
def test_what_two_runners_do_to_one_file_meets_or_does_not(ours: Change, theirs: Change, what: str) -> None:
    """A warning that cries wolf is not read; one that misses lets two runners undo each other."""
    theirs = replace(theirs, blob="theirs") if theirs.blob == "ours" else theirs
    found = find_overlaps({1: [ours], 2: [theirs]})
    assert [overlap.what for overlap in found] == ([what] if what else [])


def test_every_pair_is_looked_at_and_other_files_do_not_meet() -> None:
    """Three runners are three pairs."""
    other = Change("b.py", Kind.ADDED, "x")
    found = find_overlaps({3: [ADDED], 1: [other, ADDED], 2: [other]})
    assert found == [
        Overlap(1, 2, "b.py", "both add it, to the same contents"),
        Overlap(1, 3, "a.py", "both add it, to the same contents"),
    ]
