import pytest

from tests.support.detecting import at, build, look, render, row, say, status, week


def test_a_dialog_over_an_unanswered_prompt_acts_once_it_stands() -> None:
    """The transcript is silent, but nobody answered the prompt and nobody said the dialog's words."""
    detector = build()
    say(detector, 1, "user", "fix it")
    assert render(look(detector, 2, "! choose a model")) == ["limit model - screen no"]
    assert detector.wakes_at() == at(4)
    assert look(detector, 3, "! choose a model") == ()
    assert render(detector.tick(now=at(4))) == ["limit model - screen acts"]
    assert detector.wakes_at() is None
    assert detector.tick(now=at(9)) == ()
    assert look(detector, 10, "! choose a model") == ()
    assert detector.wakes_at() is None


@pytest.mark.parametrize("means", ["user", "agent"])
def test_a_row_from_before_the_dialog_that_is_heard_after_it_changes_nothing(means: str) -> None:
    """Sources tell at different speeds, and a dialog that waits for an answer is painted only once."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 2, "! nearly there")
    detector.hear(row(1.5, means, "as you say"), now=at(3))
    assert render(detector.tick(now=at(4))) == ["near-limit warning - screen acts"]


def test_a_row_from_after_the_dialog_begins_its_time_anew() -> None:
    """Whether it still stands is for the next look to say."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 2, "! nearly there")
    say(detector, 3, "agent", "done")
    assert detector.wakes_at() is None


def test_a_dialog_that_goes_away_never_acts() -> None:
    """It was repainted, or somebody chose."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 2, "! choose a model")
    look(detector, 3, "nothing")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(9)) == ()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [("user", "fix it"), ("agent", "done")],
        [("user", "print `choose a\n model`")],
        [("user", "fix it"), ("tool", "! choose a model")],
    ],
)
def test_a_dialog_without_agreement_never_acts(rows: list[tuple[str, str]]) -> None:
    """No transcript, an answered prompt, or words that a user or a tool said."""
    detector = build()
    for index, (kind, text) in enumerate(rows):
        say(detector, index, kind, text)
    look(detector, 10, "! choose a model")
    assert detector.wakes_at() is None
    assert detector.tick(now=at(20)) == ()


def test_words_said_later_in_a_known_conversation_count_before() -> None:
    """A replay knows the whole leg: what is said at its end is a quotation at its beginning too."""
    detector = build()
    detector.recall(row(50, "tool", "choose a model"))
    detector.recall(row(-50, "tool", "nearly there"))
    say(detector, 1, "user", "fix it")
    look(detector, 2, "! choose a model", "! nearly there")
    assert render(detector.tick(now=at(9))) == ["near-limit warning - screen acts"]


def test_a_warning_that_nobody_said_acts_though_the_prompt_was_answered() -> None:
    """Preparing a successor costs nothing; it only must not be talked into."""
    detector = build()
    say(detector, 1, "agent", "done")
    look(detector, 2, "! nearly there")
    assert render(detector.tick(now=at(5))) == ["near-limit warning - screen acts"]


def test_a_record_that_needs_the_screen_acts_once_it_was_seen() -> None:
    """In either order: the record of a switch and the dialog in which it was chosen."""
    detector = build()
    look(detector, 1, "! choose a model")
    assert render(say(detector, 2, "error", "switched")) == ["limit model - transcript acts"]
    other = build()
    assert say(other, 1, "error", "switched") == ()
    assert render(look(other, 2, "! choose a model")) == [
        "limit model - screen no",
        "limit model - transcript acts",
    ]


def test_a_usage_window_gives_the_exact_reset() -> None:
    """Words are cut to the minute; returning a minute early would hit the limit again."""
    detector = build()
    status(detector, 1, 100, at(3661).timestamp())
    assert render(say(detector, 2, "error", "limit reached until 11:01")) == [
        "limit account 11:01:01 transcript acts"
    ]
    assert say(detector, 3, "error", "limit reached until 11:01") == ()


def test_a_usage_window_heard_later_makes_the_reset_exact() -> None:
    """The status line runs only after the limit's dialog was closed."""
    detector = build()
    say(detector, 1, "error", "limit reached until 11:01")
    assert status(detector, 2, 100, at(9000).timestamp()) == ()
    assert render(status(detector, 3, 100, at(3661).timestamp())) == [
        "limit account 11:01:01 transcript acts"
    ]
    assert status(detector, 4, 100, at(3661).timestamp()) == ()


def test_a_full_window_gives_a_reset_where_none_is_said() -> None:
    """An open window does not: it is not the one that was hit."""
    detector = build()
    status(detector, 1, 50, at(3661).timestamp())
    assert render(say(detector, 2, "error", "limit reached")) == ["limit account - transcript acts"]
    other = build()
    status(other, 1, 100, at(3661).timestamp())
    assert render(say(other, 2, "error", "limit reached")) == ["limit account 11:01:01 transcript acts"]


def test_a_window_that_fills_is_a_near_limit_once() -> None:
    """At 100 % it is the limit itself that will be reported."""
    detector = build()
    assert status(detector, 1, 50, at(3661).timestamp()) == ()
    (near,) = status(detector, 2, 92, at(3661).timestamp())
    assert render((near,)) == ["near-limit warning 11:01:01 status-line acts"]
    assert near.evidence.text == "92 % of its day window is used"
    assert status(detector, 3, 95, at(3661).timestamp()) == ()
    assert status(detector, 4, 100, at(3661).timestamp()) == ()


def test_two_windows_that_fill_are_two_near_limits_each_once() -> None:
    """One status line reports both, turn after turn: a journal must not grow by that."""
    detector = build()
    heard = [status(detector, seconds, 92, at(3661).timestamp()) for seconds in (1, 3, 5)]
    heard += [week(detector, seconds, 91) for seconds in (6, 7)]
    say(detector, 8, "agent", "done")
    heard += [status(detector, 9, 93, at(3661).timestamp()), week(detector, 10, 93)]
    assert [len(signals) for signals in heard] == [1, 0, 0, 1, 0, 0, 0]


def test_a_reset_that_moves_under_a_near_limit_is_told_of_no_second_time() -> None:
    """Some count from the last request on: their reset is never the same."""
    detector = build()
    heard = [
        status(detector, 600 * one, 92 + one / 10, at(9000 + 1200 * one).timestamp()) for one in range(1, 9)
    ]
    assert [len(signals) for signals in heard] == [1] + 7 * [0]


def test_a_near_limit_on_the_screen_is_the_one_a_window_reported() -> None:
    """The words bring nothing the exact record did not; the other way round the reset is new."""
    detector = build()
    say(detector, 1, "agent", "done")
    status(detector, 2, 92, at(3661).timestamp())
    assert look(detector, 3, "! nearly there") == ()
    assert detector.tick(now=at(9)) == ()
    other = build()
    say(other, 1, "agent", "done")
    assert render(look(other, 2, "! nearly there")) == ["near-limit warning - screen no"]
    assert render(other.tick(now=at(5))) == ["near-limit warning - screen acts"]
    assert render(status(other, 6, 92, at(3661).timestamp())) == [
        "near-limit warning 11:01:01 status-line acts"
    ]


def test_a_window_that_says_too_little_is_passed_over() -> None:
    """Status lines lack fields for some plans."""
    rows: list[tuple[object, object]] = [
        (None, 1795177936),
        (True, 1795177936),
        ("92", 1795177936),
        (92, None),
    ]
    assert [(used, reset) for used, reset in rows if status(build(), 1, used, reset) != ()] == []


def test_screen_words_no_rule_knows_are_passed_over() -> None:
    """A notice position holds many other notices."""
    assert look(build(), 1, "! something else", "? limit reached", "limit reached") == ()
