"""A session over time: legs by agent, turns, handoffs, rests; of long, odd and hostile journals, too."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.events.session import Body, Event
from agent_relay.domain.protocol.timeline import TimelineTold, TimelineUsage
from agent_relay.session.fold import ImpossibleEventError
from agent_relay.session.views.timeline import TimelineBounds, TimelineFold, build_timeline

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
RESET = START + timedelta(hours=3)
BOUNDS = TimelineBounds(legs=100, turns=300, handoffs=50)
Line = tuple[float, Body]
LIMIT = words.SignalSeen(
    "L1", "ada", "limit", "account", "screen", "your session limit", decides=True, until=RESET.isoformat()
)


def _lay(lines: Iterable[Line]) -> list[Event]:
    """The lines, each its seconds after the start."""
    return [
        Event(number, START + timedelta(seconds=seconds), 1, body)
        for number, (seconds, body) in enumerate(lines, 1)
    ]


BEGINNING: list[Line] = [
    (0, words.SessionCreated("S", "/r", "/r", ("ada", "bob"), "fix it")),
    (0, words.LegStarting("L1", "ada", 1, model="m1")),
    (1, words.LegStarted("L1", 10, 11, 12)),
    (2, words.LegReady("L1")),
    (10, words.LegBusy("L1")),
    (11, words.PromptSeen("L1", "fix the\nparser", (START + timedelta(seconds=9)).isoformat())),
    (40, words.LegAsking("L1")),
    (50, words.LegBusy("L1")),
    (70, words.LegReady("L1")),
    (100, words.LegBusy("L1")),
    (160, LIMIT),
]
FAILOVER: list[Line] = [
    (161, work.HandoffBegun("H1", "L1", "ada", "bob", "rate_limit", why="its session  limit")),
    (162, words.LegEnded("L1", "stopped")),
    (162, work.PredecessorStopped("H1", "L1")),
    (163, work.PacketPublished("H1", "P", 1, "bob", "resume/1.json", "resume/1.md", "f")),
    (163, words.LegStarting("L2", "bob", 2, handoff="H1", packet="P")),
    (164, words.LegStarted("L2", 20, 21, 22)),
    (165, words.LegReady("L2")),
    (166, work.PacketDelivered("H1", "L2")),
    (167, words.LegBusy("L2")),
    (168, work.HandoffConfirmed("H1", "L2")),
    (200, words.LegReady("L2")),
]


def _build(*lines: Line, usage: dict[str, TimelineUsage] | None = None) -> TimelineTold:
    found = build_timeline(_lay(lines), usage)
    assert found is not None
    return found


def _at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def test_a_failover_is_two_lanes_with_turns_a_handoff_and_a_rest() -> None:
    """Who worked when, who took over why, and until when the other rests: one drawing answers it."""
    found = _build(*BEGINNING, *FAILOVER)
    ada, bob = found.lanes
    assert [(leg.leg, leg.number, leg.begin, leg.end, leg.how, leg.model) for leg in ada.legs] == [
        ("L1", 1, _at(0), _at(162), "stopped", "m1")
    ]
    assert [(turn.number, turn.begin, turn.end, turn.prompt) for turn in ada.legs[0].turns] == [
        (1, _at(10), _at(70), "fix the parser"),
        (2, _at(100), _at(160), ""),
    ]
    assert [(rest.begin, rest.end, rest.until, rest.scope) for rest in ada.rests] == [
        (_at(160), "", RESET.isoformat(), "account")
    ]
    assert (bob.agent, bob.legs[0].number, bob.legs[0].end, bob.legs[0].handoff) == ("bob", 2, "", "H1")
    (made,) = found.handoffs
    assert (made.from_agent, made.to_agent, made.reason, made.why) == (
        "ada", "bob", "rate limit", "its session limit"
    )  # fmt: skip
    assert (made.from_leg, made.to_leg, made.begin, made.end, made.status) == (
        "L1", "L2", _at(161), _at(168), "done"
    )  # fmt: skip
    assert (found.turn_count, found.is_over, found.is_busy) == (3, False, False)
    assert (found.begin, found.last, found.clock_was_set_back) == (_at(0), _at(200), False)


def test_what_is_under_way_has_no_end() -> None:
    """A moment that has not come is not known, and a guess would be drawn as the truth."""
    assert _build(*BEGINNING[:7]).is_busy
    assert _build(*BEGINNING[:7]).lanes[0].legs[0].turns[-1].end == ""
    assert _build(*BEGINNING, *FAILOVER[:3]).is_busy
    assert _build(*BEGINNING, *FAILOVER[:3]).handoffs[0].end == ""


def test_usage_is_summed_and_what_is_unknown_is_not_zero() -> None:
    """A leg without a record, or a model without a price, makes a sum a least, not a total."""
    known = TimelineUsage(tokens=10, tokens_are_whole=True, cost_usd="0.10", cost_is_whole=True)
    unpriced = TimelineUsage(tokens=5, tokens_are_whole=True)
    lines = [*BEGINNING, *FAILOVER]
    both = _build(*lines, usage={"L1": known, "L2": unpriced})
    assert (both.usage.tokens, both.usage.tokens_are_whole) == (15, True)
    assert (both.usage.cost_usd, both.usage.cost_is_whole) == ("0.1", False)
    assert (both.lanes[1].usage.cost_usd, both.lanes[1].usage.tokens) == ("", 5)
    one = _build(*lines, usage={"L1": known})
    assert (one.usage.tokens, one.usage.tokens_are_whole, one.lanes[1].usage.tokens) == (10, False, None)
    assert _build(*lines).usage == TimelineUsage()


def test_a_rest_ends_with_its_reset_or_with_the_agents_next_turn() -> None:
    """An agent that was reset by hand has rested no longer than that."""
    rested = (200, words.SessionRested("no agent is available", RESET.isoformat()))
    woke = (11_000, words.SessionWoke())
    late = _build(*BEGINNING, rested, woke)
    assert [(rest.begin, rest.end, rest.why) for rest in late.rests] == [
        (_at(200), _at(11_000), "no agent is available")
    ]
    assert late.lanes[0].rests[0].end == RESET.isoformat()
    early = _build(*BEGINNING, rested, (300, words.SessionWoke()), (310, words.LegBusy("L1")))
    assert early.lanes[0].rests[0].end == _at(310)
    again = (12_000, words.SignalSeen("L1", "ada", "limit", "account", "screen", "x", decides=True))
    busy = (11_100, words.LegBusy("L1"))
    assert [rest.begin for rest in _build(*BEGINNING, rested, woke, busy, again).lanes[0].rests] == [
        _at(160),
        _at(12_000),
    ]


def test_one_limit_that_several_sources_tell_of_is_one_rest() -> None:
    """The screen says it first, the transcript then says until when."""
    later = words.SignalSeen(
        "L1", "ada", "limit", "account", "transcript", "x", decides=True, until=_at(20_000)
    )
    first = words.SignalSeen("L1", "ada", "limit", "account", "screen", "x", decides=True)
    (rest,) = _build(*BEGINNING[:-1], (160, first), (161, later), (162, LIMIT)).lanes[0].rests
    assert (rest.begin, rest.until) == (_at(160), _at(20_000))


def test_a_clock_set_back_gives_no_span_that_ends_before_it_begins() -> None:
    """Bars of a negative width are drawn anywhere; that the clock was set back is said."""
    lines = [(seconds - (3600 if seconds > 50 else 0), body) for seconds, body in [*BEGINNING, *FAILOVER]]
    found = _build(*lines)
    assert found.clock_was_set_back
    spans = [(leg.begin, leg.end) for lane in found.lanes for leg in lane.legs]
    spans += [(turn.begin, turn.end) for lane in found.lanes for leg in lane.legs for turn in leg.turns]
    spans += [(one.begin, one.end) for one in found.handoffs]
    assert len(spans) == 6
    moments = [(datetime.fromisoformat(begin), datetime.fromisoformat(end)) for begin, end in spans if end]
    assert all(begin <= end for begin, end in moments)
    assert found.begin == _at(70 - 3600)
    assert found.turn_count == 3


def test_legs_of_no_length_are_there_and_share_their_moment() -> None:
    """A program that cannot be started ends in the second it began in."""
    lines: list[Line] = [
        BEGINNING[0],
        (0, words.LegStarting("L1", "ada", 1)),
        (0, words.LegEnded("L1", "unstarted")),
        (0, words.SessionEnded("it cannot be started")),
    ]
    found = _build(*lines)
    assert [(leg.begin, leg.end, leg.turn_count) for leg in found.lanes[0].legs] == [(_at(0), _at(0), 0)]
    assert (found.is_over, found.gaps, found.begin == found.last) == (True, (), True)


def test_long_idle_stretches_are_gaps_but_long_turns_are_not() -> None:
    """Lunch would otherwise take most of the drawing, and the work a column."""
    lunch: list[Line] = [(10_000, words.LegBusy("L1")), (20_000, words.LegReady("L1"))]
    found = _build(*BEGINNING[:9], *lunch, (60_000, words.LegBusy("L1")))
    assert [(gap.begin, gap.end) for gap in found.gaps] == [
        (_at(70), _at(10_000)),
        (_at(20_000), _at(60_000)),
    ]
    assert found.idle_s == pytest.approx(5035.0)
    many = [
        (at + seconds, body(f"L{1}"))
        for at in range(1000, 90_000, 3000)
        for seconds, body in ((0, words.LegBusy), (5, words.LegReady))
    ]
    assert len(_build(*BEGINNING[:9], *many).gaps) == 8


def test_ten_thousand_turns_are_bounded_and_none_is_uncounted() -> None:
    """A page that is sent two megabytes at every change stands still."""
    fold = TimelineFold()
    lines = [
        (100 + 2 * turn + part, body("L1"))
        for turn in range(10_000)
        for part, body in ((0, words.LegBusy), (1, words.LegReady))
    ]
    for event in _lay([*BEGINNING[:4], *lines]):
        fold.hear(event)
    short, whole = fold.build(bounds=BOUNDS), fold.build()
    assert short is not None
    assert whole is not None
    assert len(whole.lanes[0].legs[0].turns) == 10_000
    turns = short.lanes[0].legs[0].turns
    assert 100 < len(turns) <= 301
    assert sum(turn.count for turn in turns) == 10_000 == short.lanes[0].turn_count
    assert len(short.model_dump_json()) < 60_000


def test_a_thousand_legs_are_bounded_and_what_is_left_out_is_said() -> None:
    """A chat has a leg for each turn."""
    lines: list[Line] = [BEGINNING[0]]
    for number in range(1000):
        at, leg = 10 * number, f"L{number}"
        agent = ("ada", "bob")[number % 2]
        lines += [
            (at, work.TurnBegun(agent, "go on")),
            (at, words.LegStarting(leg, agent, number + 1, headless=True)),
            (at + 1, words.LegBusy(leg)),
            (at + 6, words.LegReady(leg)),
            (at + 7, work.TurnEnded(leg, "done")),
            (at + 7, words.LegEnded(leg, "exited", 0)),
            (at + 8, work.SessionWaits()),
        ]
    fold = TimelineFold()
    for event in _lay(lines):
        fold.hear(event)
    found = fold.build({"L0": TimelineUsage(tokens=7)}, bounds=BOUNDS)
    assert found is not None
    assert sum(len(lane.legs) for lane in found.lanes) == 100
    assert (found.legs_left_out, found.turn_count, found.usage.tokens) == (900, 1000, 7)
    assert found.begin == _at(9000)
    assert [lane.leg_count for lane in found.lanes] == [500, 500]


def test_a_journal_without_a_session_has_no_timeline_and_one_that_contradicts_itself_says_so() -> None:
    """Journals are read from their first line on, and damaged ones are named."""
    assert build_timeline([]) is None
    assert build_timeline(_lay([(0, words.Unknown("later.event", {}))])) is None
    with pytest.raises(ImpossibleEventError):
        build_timeline(_lay([(0, words.LegReady("L1"))]))


def test_a_prompt_that_is_seen_late_belongs_to_the_turn_it_began() -> None:
    """The record of a short turn is often read when the turn is over."""
    late = words.PromptSeen("L1", "late", _at(9))
    early = words.PromptSeen("L1", "early", _at(99))
    lost = words.PromptSeen("L9", "of no leg", _at(99))
    lines = [*BEGINNING[:5], *BEGINNING[6:9], (71.0, late), (98.0, early), (98.0, lost), *BEGINNING[9:]]
    assert [turn.prompt for turn in _build(*lines).lanes[0].legs[0].turns] == ["late", "early"]


def test_a_prompt_that_met_a_limit_at_once_is_a_turn() -> None:
    """The agent was never seen at work, and was asked all the same."""
    first, second = (words.PromptSeen("L1", text, _at(at)) for text, at in (("one", 20), ("two", 30)))
    ended = (170.0, words.LegEnded("L1", "stopped"))
    short = [*BEGINNING[:4], (20.5, first), (32.0, second), (160.0, LIMIT), ended]
    late = [*BEGINNING[:4], (160.0, LIMIT), (161.0, second), ended]
    assert [(turn.begin, turn.end, turn.prompt) for turn in _build(*short).lanes[0].legs[0].turns] == [
        (_at(20), _at(32), "one"),
        (_at(30), _at(160), "two"),
    ]
    (turn,) = _build(*late).lanes[0].legs[0].turns
    assert (turn.begin, turn.end, _build(*late).turn_count) == (_at(30), _at(160), 1)
    unasked = [*BEGINNING[:4], (160.0, LIMIT), ended]
    assert _build(*unasked).turn_count == 0
