"""Answers in columns say what they say one by one, whatever else is told of their sessions."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.transcripts.usage_records import (
    AnswerUsage,
    LinesChanged,
    PackedAnswers,
    PromptSent,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    list_answers,
    list_columns,
    pack_answers,
    unpack_answers,
)
from agent_relay.usage._dedupe import Native, dedupe_marks
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.session_work import LegWork, SessionWork
from agent_relay.usage.table_format import GROUPINGS
from agent_relay.usage.totals import Rate

MINUTE = 60_000
FIRST = 1_763_632_800_000
"""At 10:00."""
_SESSIONS = st.sampled_from(["s1", "s2", "s3"])


def _used(at: int, chain: str, session: str = "s1", model: str = "m", **more: int) -> AnswerUsage:
    return AnswerUsage("", at, session, model, input=at % 1000, output=7, reasoning=3, chain=chain, **more)


@st.composite
def _transcripts(draw: st.DrawFn) -> list[list[UsageRecord]]:
    """The two parts a file was read in: tidy most often, as programs write, else whatever can be decoded."""
    session, is_tidy = draw(_SESSIONS), draw(st.sampled_from([True, True, True, False]))
    marks: list[UsageRecord] = []
    if draw(st.booleans()):
        parent = draw(st.sampled_from(["", "", "s1", "s2", "gone"]))
        marks.append(SessionOpened(session, "/w", parent, is_side=draw(st.booleans())))
    at, total = FIRST + draw(st.integers(0, 3)) * MINUTE, draw(st.integers(0, 3))
    for _ in range(draw(st.integers(0, 6))):
        at, total = at + draw(st.sampled_from([0, 1, 5, 40])) * MINUTE, total + 1
        moment = at if is_tidy else draw(st.sampled_from([0, at, FIRST]))
        own = session if is_tidy else draw(_SESSIONS)
        other = draw(st.sampled_from([None, None, None, PromptSent, TurnFailed, LinesChanged]))
        key = f"p{draw(st.integers(0, 5))}"
        if other is None:
            chain = f"{total}/0" if is_tidy else draw(st.sampled_from(["", f"{total}/0", "1/0"]))
            name = draw(st.sampled_from(["", "", "", "", "k1", "k2"]))
            model = draw(st.sampled_from(["m", "m", "n", ""]))
            counts = [draw(st.sampled_from([0, 1, 700, 3000])) for _ in range(5)]
            marks.append(AnswerUsage(name, moment, own, model, *counts, 0, chain))
        else:
            marks.append(
                LinesChanged(key, moment, own, 2, 1) if other is LinesChanged else other(key, moment, own)
            )
    cut = draw(st.sampled_from([len(marks), len(marks), len(marks) // 2]))
    return [marks[:cut], marks[cut:]]


def _name_day(at: int) -> str:
    """Days of an hour each: work goes on over several."""
    return str(at // (60 * MINUTE))


def _tell(natives: Sequence[Native]) -> list[object]:
    return [
        (one.session, one.cwd, one.parent, list_answers(one.used), one.prompts, one.failures, one.changes)
        for one in natives
    ]


@given(st.lists(_transcripts(), max_size=5))
def test_pooled_answers_are_the_same_packed(files: list[list[list[UsageRecord]]]) -> None:
    """Forks, siblings of a lost parent, files that grew and subagents tell of one answer in many ways."""
    plain = dedupe_marks("a", [[*begin, *rest] for begin, rest in files])
    packed = dedupe_marks("a", [[*pack_answers(begin), *pack_answers(rest)] for begin, rest in files])
    assert _tell(packed) == _tell(plain)


@pytest.mark.size("test")
@given(
    st.lists(_transcripts(), max_size=4),
    st.sampled_from(GROUPINGS),
    st.sampled_from([0, FIRST + 1, FIRST + 30 * MINUTE]),
)
def test_sums_are_the_same_packed(files: list[list[list[UsageRecord]]], by: str, since: int) -> None:
    """Rows, prices by the size of a request, turns and times: with a leg of ours, too."""
    small = Rate(0, *[Decimal(1)] * 5)
    rates = {"m": (small, Rate(2000, *[Decimal(2)] * 5)), "n": (small,)}
    leg = LegWork("L1", "a", FIRST + 10 * MINUTE, FIRST + 30 * MINUTE, natives=["s1"])
    works = [SessionWork("S1", "/w", legs=[leg], spans=[], passings=[])]
    question = Question(by, lambda model, _at: rates.get(model, ()), _name_day, since=since)  # type: ignore[arg-type]  # one of them
    plain = dedupe_marks("a", [[*begin, *rest] for begin, rest in files])
    packed = dedupe_marks("a", [[*pack_answers(begin), *pack_answers(rest)] for begin, rest in files])
    for some in ([], works):
        assert sum_rows(some, packed, question) == sum_rows(some, plain, question)


@given(_transcripts())
def test_what_is_packed_comes_back(file: list[list[UsageRecord]]) -> None:
    """No answer is lost or changed, and what is not packed stays in its order."""
    marks = [*file[0], *file[1]]
    packed = pack_answers(marks)
    again = unpack_answers(packed)
    assert sorted(map(repr, again)) == sorted(map(repr, marks))
    others = [mark for mark in marks if not isinstance(mark, AnswerUsage) or mark.key]
    assert [mark for mark in again if not isinstance(mark, AnswerUsage) or mark.key] == others


def test_what_two_files_share_counts_once_where_both_are_packed() -> None:
    """A fork repeats its parent's answers, a copied file all of its session's, a subagent none."""
    own: list[UsageRecord] = [SessionOpened("s1", "/w"), _used(FIRST, "1"), _used(FIRST + 1, "2")]
    again: list[UsageRecord] = [_used(FIRST, "1"), _used(FIRST + 1, "2"), _used(FIRST + 2, "3")]
    forked: list[UsageRecord] = [
        SessionOpened("s2", "/w", "s1"),
        *(_used(FIRST + 9, total, "s2") for total in "124"),
    ]
    side: list[UsageRecord] = [
        SessionOpened("s3", "/w", "s1", is_side=True),
        _used(FIRST, "1", "s3"),
        _used(FIRST, "5", "s3"),
    ]
    packed = [pack_answers(marks) for marks in (own, again, forked, side)]
    assert all(any(isinstance(mark, PackedAnswers) for mark in marks) for marks in packed)
    natives = dedupe_marks("a", packed)
    told = {one.session: [used.chain for used in list_answers(one.used)] for one in natives}
    assert told == {"s1": ["1", "5", "2", "3"], "s2": ["4"]}


def test_answers_of_one_moment_stay_in_the_order_they_were_first_told_in() -> None:
    """Whatever other files lie between the two that tell of them."""
    own: list[UsageRecord] = [_used(FIRST, "1"), _used(FIRST, "2")]
    again: list[UsageRecord] = [_used(FIRST + 9, "1")]
    between: list[UsageRecord] = [PromptSent("p", FIRST, "s1"), _used(0, "5", "s2")]
    for files in ([own, again], [own, between, again]):
        for told in (files, [pack_answers(marks) for marks in files]):
            (native,) = (one for one in dedupe_marks("a", told) if one.session == "s1")
            assert [used.chain for used in list_answers(native.used)] == ["1", "2"]


def test_of_two_that_began_together_the_one_that_ended_first_has_what_they_share() -> None:
    """A copy goes on; what it was copied from does not."""
    for late, early in (("s1", "s2"), ("s2", "s1")):
        files: list[list[UsageRecord]] = [
            [PromptSent("p", FIRST, late), _used(FIRST, "1", late), _used(FIRST + 9, "2", late)],
            [PromptSent("p", FIRST, early), _used(FIRST, "3", early), _used(FIRST + 5, "4", early)],
        ]
        natives = dedupe_marks("a", [pack_answers(marks) for marks in files])
        assert {one.session: len(one.prompts) for one in natives} == {early: 1, late: 0}


def test_a_pack_stands_where_its_first_answer_stood() -> None:
    """Who was there first is told by the first mark of a file."""
    marks = [
        SessionOpened("s1"),
        PromptSent("p", 1, "s1"),
        _used(2, "a"),
        PromptSent("q", 3, "s1"),
        _used(4, "b", model="n"),
    ]
    packed = pack_answers(marks)
    assert [type(mark) for mark in packed] == [SessionOpened, PromptSent, PackedAnswers, PromptSent]
    (pack,) = (mark for mark in packed if isinstance(mark, PackedAnswers))
    assert (pack.session, pack.at, pack.last, pack.models) == ("s1", 2, 4, (("m", 1), ("n", 1)))
    columns = list_columns(pack)
    assert (columns.at, columns.models) == ([2, 4], ["m", "n"])
    assert columns.counts == [[2, 4], [0, 0], [0, 0], [7, 7], [3, 3], [0, 0]]
    (native,) = dedupe_marks("a", [packed])
    assert native.used is pack


def test_what_columns_cannot_say_is_not_packed() -> None:
    """Another session, a total told twice or not at all, an earlier time, a dearer cache."""
    whole = _used(2, "a")
    for other in (
        _used(4, "b", session="s2"),
        _used(4, "a"),
        _used(4, ""),
        _used(1, "b"),
        _used(4, "b", cache_write=1, cache_write_long=1),
    ):
        marks: list[UsageRecord] = [whole, other]
        assert pack_answers(marks) is marks
