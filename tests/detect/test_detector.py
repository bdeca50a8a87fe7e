import pytest

from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.limits import Record, Source
from tests.support.detecting import at, build, event, look, render, row, say


def test_a_structured_record_decides_alone() -> None:
    """The agent's own record of a failed turn needs no second witness."""
    found = say(build(), 5, "error", "limit reached until 9pm")
    assert render(found) == ["limit account 21:00:00 transcript acts"]
    assert found[0].rule == "limit"
    assert found[0].evidence.text == "limit reached until 9pm"
    assert found[0].evidence.where == "t"


def test_two_sources_of_one_limit_are_one_signal() -> None:
    """The hook and the transcript row tell the same story."""
    detector = build()
    hook = Record(Source.HOOK, {"event": "fail", "text": "limit reached until 9pm"})
    assert len(detector.hear(hook, now=at(5))) == 1
    assert say(detector, 5, "error", "limit reached until 9pm") == ()


def test_records_older_than_the_leg_never_count() -> None:
    """Resumed and forked transcripts carry old limits along."""
    rows: list[float] = [-1, -86_400]
    assert [seconds for seconds in rows if say(build(), seconds, "error", "limit reached") != ()] == []


def test_a_transcript_row_without_a_time_is_no_evidence() -> None:
    """Nothing shows that it is new; a hook payload is new by being delivered."""
    detector = build()
    timeless = Record(Source.TRANSCRIPT, {"type": "error", "text": "limit reached"})
    assert detector.hear(timeless, now=at(5)) == ()
    hook = Record(Source.HOOK, {"event": "fail", "text": "limit reached"})
    assert render(detector.hear(hook, now=at(5))) == ["limit account - hook acts"]


def test_records_that_say_nothing_known_are_silent() -> None:
    """Other events, missing texts and unknown words pass by."""
    detector = build()
    assert say(detector, 1, "error", "something else") == ()
    assert detector.hear(Record(Source.HOOK, {"event": "fail"}), now=at(1)) == ()
    assert detector.hear(Record(Source.HOOK, {"event": "other"}), now=at(1)) == ()


def test_a_screen_never_decides_where_records_can() -> None:
    """An agent can forge its own limit row exactly; the next record says what is true."""
    detector = build()
    assert render(look(detector, 1, "! limit reached until 9pm")) == ["limit account 21:00:00 screen no"]
    assert look(detector, 2, "! limit reached until 9pm") == ()
    assert render(say(detector, 3, "error", "limit reached until 9pm")) == [
        "limit account 21:00:00 transcript acts"
    ]
    assert look(detector, 4, "! limit reached until 9pm") == ()


def test_a_screen_decides_where_nothing_else_can_be_read() -> None:
    """With no source opened, or for an agent that has none, its notices are all there is."""
    assert render(look(build(trusts_screen=True), 1, "! limit reached")) == ["limit account - screen acts"]
    bare = Rules.parse(
        {
            "feeds": [{"name": "screen", "source": "screen", "place": {"starts": "^! "}}],
            "limits": [
                {
                    "id": "l",
                    "feeds": ["screen"],
                    "pattern": "limit",
                    "kind": "limit",
                    "scope": "account",
                    "accepts": ["limit"],
                    "rejects": ["x"],
                }
            ],
        }
    )
    assert render(look(build(rules=bare), 1, "! limit")) == ["limit account - screen acts"]


def test_a_reset_that_comes_later_completes_a_limit() -> None:
    """Half a painted row has no reset yet."""
    detector = build()
    assert render(look(detector, 1, "! limit reached")) == ["limit account - screen no"]
    assert render(look(detector, 2, "! limit reached until 9pm")) == ["limit account 21:00:00 screen no"]
    assert look(detector, 3, "! limit reached") == ()


def test_the_same_limit_can_be_hit_again_after_an_answer() -> None:
    """Someone waited, worked on and ran into it once more."""
    detector = build()
    assert len(say(detector, 1, "error", "limit reached")) == 1
    assert say(detector, 2, "error", "limit reached") == ()
    say(detector, 3, "agent", "working again")
    assert look(detector, 3, "! limit reached") == ()
    assert render(say(detector, 4, "error", "limit reached")) == ["limit account - transcript acts"]


def test_an_answer_from_before_the_limit_that_is_heard_after_it_does_not_end_it() -> None:
    """A hook tells of the limit at once; the transcript's rows, the answer before it among them, follow."""
    detector = build()
    detector.hear(Record(Source.HOOK, {"event": "fail", "text": "limit reached"}, at(5)), now=at(5))
    say(detector, 3, "agent", "almost there")
    assert say(detector, 4, "error", "limit reached") == ()
    say(detector, 6, "agent", "working again")
    assert render(say(detector, 7, "error", "limit reached")) == ["limit account - transcript acts"]


def test_a_planned_wait_longer_than_patience_is_a_silent_limit() -> None:
    """The agent says nothing to anybody and sleeps for hours."""
    detector = build()
    assert render(event(detector, 1, "retry in 10s")) == ["retry transient - event no"]
    assert render(event(detector, 2, "retry in 2h")) == ["silent-limit model 12:00:02 event acts"]
    assert detector.wakes_at() is None


def test_retries_without_progress_are_a_silent_limit_after_patience() -> None:
    """Short waits that never end are as good as a long one."""
    detector = build()
    assert detector.wakes_at() is None
    event(detector, 10, "retry in 10s")
    event(detector, 200, "retry in 20s")
    assert detector.wakes_at() == at(310)
    assert detector.tick(now=at(309)) == ()
    assert render(detector.tick(now=at(310))) == ["silent-limit account - clock acts"]
    assert detector.wakes_at() is None


@pytest.mark.parametrize("heals", ["agent", "user", "idle"])
def test_retries_that_heal_are_left_alone(heals: str) -> None:
    """An answer, a new prompt or an idle agent ends a series of retries."""
    detector = build()
    event(detector, 10, "retry in 10s")
    if heals == "idle":
        event(detector, 20, "", "idle")
    else:
        say(detector, 20, heals, "hello")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(1000)) == ()


def test_an_answer_older_than_the_retries_does_not_heal_them() -> None:
    """Some sources are written in batches, seconds late."""
    detector = build()
    event(detector, 10, "retry in 10s")
    detector.hear(row(5, "agent", "earlier"), now=at(20))
    assert detector.wakes_at() == at(310)


def test_a_network_that_is_away_is_no_limit() -> None:
    """However long it lasts: another agent has the same network."""
    detector = build()
    event(detector, 1, "network")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(10_000)) == ()


def test_retries_on_a_trusted_screen_count_too() -> None:
    """Without records the screen's retry row starts the clock."""
    detector = build(trusts_screen=True)
    look(detector, 1, "! retry in 5s")
    assert render(look(detector, 302, "! retry in 5s")) == ["silent-limit account - clock acts"]


def test_resets_and_waits_can_stand_in_fields() -> None:
    """An event's own number is exact; a screen has no fields."""
    rules = Rules.parse(
        {
            "feeds": [
                {"name": "e", "source": "event", "text": "text"},
                {"name": "s", "source": "screen", "place": {"starts": "^! "}},
            ],
            "limits": [
                {
                    "id": "l",
                    "feeds": ["e", "s"],
                    "pattern": "limit",
                    "kind": "limit",
                    "scope": "account",
                    "reset": [{"forms": ["epoch"], "field": "next"}, {"forms": ["clock"]}],
                    "accepts": ["limit"],
                    "rejects": ["x"],
                }
            ],
        }
    )
    detector = build(rules=rules)
    assert render(look(detector, 1, "! limit")) == ["limit account - screen no"]
    record = Record(Source.EVENT, {"text": "limit", "next": at(60).timestamp()})
    assert render(detector.hear(record, now=at(2))) == ["limit account 10:01:00 event acts"]


def test_a_long_text_is_quoted_where_it_matched() -> None:
    """Evidence is shown to people; a provider's whole error body is not."""
    found = say(build(), 5, "error", "limit reached until 9pm" + " " * 5)
    assert found[0].evidence.text == "limit reached until 9pm"
    long = event(build(), 5, "x" * 500)
    assert long == ()
