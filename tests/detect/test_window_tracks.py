"""What is made of readings of a usage window that cannot all be right."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.detect.window_tracks import Pace, WindowReading, WindowTrack, WindowTracks, follow, judge
from agent_relay.domain.documents.rules import UsageWindow
from agent_relay.domain.limits import NearLimitWishes, Source
from agent_relay.domain.values import replace
from tests.support.detecting import at

WINDOW = UsageWindow(name="session", source=Source.STATUS_LINE, used="u", reset="r", near_percent=90)
LONG = 18_000.0


def read(used: float, seconds: float, resets_s: float = LONG) -> WindowReading:
    """A reading of that moment."""
    return WindowReading(WINDOW, used, at(resets_s), at(seconds))


def track(*readings: WindowReading) -> WindowTrack:
    """The track after these readings, while the agent works all the time."""
    found: WindowTrack | None = None
    now = max(one.at for one in readings)
    for one in readings:
        found = follow(found, one, (one.at - at(0)).total_seconds(), now)
    assert found is not None
    return found


def test_a_reading_that_comes_late_changes_nothing() -> None:
    """Two sources tell of one window, each at its own speed."""
    assert track(read(40, 100), read(30, 50)) == track(read(40, 100))


def test_one_reading_of_less_use_is_not_believed_and_two_are() -> None:
    """A cached answer may tell of an hour ago; a provider may also give a window back."""
    once = track(read(92, 100), read(12, 160))
    assert (once.reading.used, once.reading.at) == (92, at(160))
    assert track(read(92, 100), read(12, 160), read(92, 170), read(13, 300)).reading.used == 92
    assert track(read(92, 100), read(12, 160), read(13, 230)).reading.used == 13


def test_a_window_whose_reset_has_passed_begins_anew() -> None:
    """What was used of the last one is nothing to this one."""
    found = track(read(92, 100, 1000), read(3, 1100, 19_000))
    assert (found.reading.used, found.near_at) == (3, None)


def test_a_window_given_back_early_begins_anew() -> None:
    """Its reset moved and its use fell, both in one reading."""
    assert track(read(92, 100, 5000), read(0, 160, 18_160)).reading.used == 0


def test_a_reset_that_only_moves_is_of_the_same_window() -> None:
    """Some windows count from the last request on."""
    found = track(read(60, 100, 5000), read(61, 160, 9000))
    assert (found.reading.used, found.reading.resets_at, len(found.growths)) == (61, at(9000), 2)


def test_a_reading_of_a_window_that_is_over_is_none() -> None:
    """It was true once; of the window since, it tells nothing."""
    assert follow(None, read(92, 100, 50), 0, at(100)) is None
    assert track(read(10, 90), read(99, 100, 50)) == track(read(10, 90))


def test_a_reading_from_a_clock_that_was_ahead_does_not_outdate_all_others() -> None:
    """The clock was set back since: what is read now is newer."""
    ahead = follow(None, read(40, 9000), 0, at(9000))
    found = follow(ahead, read(50, 100), 0, at(100))
    assert found is not None
    assert found.reading.used == 50


WISHES = NearLimitWishes()


def test_a_share_is_the_users_before_the_adapters() -> None:
    """Who works in long turns wants to know earlier."""
    at_85 = track(read(85, 100))
    assert judge(at_85, Pace(), WISHES) == ""
    assert judge(at_85, Pace(), NearLimitWishes(percent=80)) == "share"
    assert judge(track(read(90, 100)), Pace(), WISHES) == "share"
    assert judge(track(read(90, 100)), Pace(), NearLimitWishes(percent=95)) == ""


def test_a_window_an_adapter_leaves_out_is_never_near_its_limit() -> None:
    """What such a record tells is for the eyes only."""
    silent = replace(WINDOW, near_percent=0)
    found = track(WindowReading(silent, 97, at(LONG), at(100)))
    assert judge(found, Pace(worked_s=100), NearLimitWishes(percent=50)) == ""


def test_a_window_that_would_be_full_before_the_turn_ends_is_near_its_limit() -> None:
    """Two points a minute, and turns of ten minutes: at 81 % this one does not end any more."""
    quick = track(*(read(61 + 2 * one, 60 * one) for one in range(11)))
    turn = Pace(worked_s=600, turn_began_s=600, turns_s=(600,))
    assert judge(quick, turn, WISHES) == "rate"
    assert judge(quick, turn, NearLimitWishes(by_rate=False)) == ""
    assert judge(quick, Pace(worked_s=600, turn_began_s=600, turns_s=(60,)), WISHES) == ""


def test_a_reading_that_stands_still_while_work_goes_on_is_extended() -> None:
    """The provider's own counter may be minutes behind."""
    quick = track(*(read(50 + 2 * one, 60 * one) for one in range(11)))
    turn = (60.0,)
    assert judge(quick, Pace(worked_s=600, turn_began_s=600, turns_s=turn), WISHES) == ""
    assert judge(quick, Pace(worked_s=1600, turn_began_s=1600, turns_s=turn), WISHES) == "rate"


def test_a_full_window_is_near_its_limit_only_if_the_agent_works_on() -> None:
    """It says itself that it met its limit; with credits, or by a count that lies, it does not."""
    full = track(read(80, 0), read(100, 60))
    assert judge(full, Pace(worked_s=70), WISHES) == ""
    assert judge(full, Pace(worked_s=120), WISHES) == "share"


READINGS = st.lists(
    st.tuples(
        st.floats(0, 120), st.floats(-600, 1200), st.floats(-3600, 700_000), st.sampled_from(("", "large"))
    ),
    max_size=40,
)


@given(READINGS)
def test_nothing_that_is_told_of_windows_makes_a_line_come_and_go(
    told: list[tuple[float, float, float, str]],
) -> None:
    """Whatever is read: a window is told of again only after its use clearly fell, or it began anew."""
    tracks = WindowTracks(WISHES)
    now, said = at(0), dict[str, tuple[float, datetime]]()
    for used, step_s, left_s, model in told:
        now += timedelta(seconds=max(1.0, step_s))
        tracks.hear_work(now, now, is_prompt=False)
        reading = WindowReading(WINDOW, used, now + timedelta(seconds=left_s), now, model=model)
        tracks.follow(reading, now)
        for near in tracks.list_near():
            before = said.get(near.reading.model)
            if before is not None:
                moved = abs(near.reading.resets_at - before[1]) > timedelta(minutes=10)
                assert moved or any(one < before[0] - 10 for one, *_ in told)
            said[near.reading.model] = (near.reading.used, near.reading.resets_at)


@given(READINGS)
def test_what_is_shown_of_a_window_is_something_its_agent_said(
    told: list[tuple[float, float, float, str]],
) -> None:
    """Never less than nothing, never a mixture that nobody reported, never a reset in the past."""
    tracks = WindowTracks(WISHES)
    now = at(0)
    for used, step_s, left_s, model in told:
        now += timedelta(seconds=step_s)
        reset = now + timedelta(seconds=left_s)
        tracks.follow(WindowReading(WINDOW, used, reset, now, model=model), now)
        assert {one.used for one in tracks.newest} <= {one for one, *_ in told}
        assert all(one.resets_at > one.at for one in tracks.newest)


def test_a_window_that_leaves_its_limit_is_told_of_once() -> None:
    """What was made ready for the limit is not needed any more; a doubtful reading ends nothing."""
    tracks = WindowTracks(WISHES)
    tracks.follow(read(92, 100), at(100))
    assert len(tracks.list_near()) == 1
    for reading in (read(70, 160), read(70, 170)):
        tracks.follow(reading, at(170))
        assert (tracks.list_near(), tracks.take_relief()) == ([], False)
    tracks.follow(read(70, 300), at(300))
    assert tracks.list_near() == []
    assert [tracks.take_relief(), tracks.take_relief()] == [True, False]


def test_a_window_that_begins_anew_has_left_its_limit_while_no_other_is_near() -> None:
    """The week's window may be near its limit still."""
    week = UsageWindow(name="week", source=Source.STATUS_LINE, used="w", reset="v", near_percent=90)
    for used, is_relieved in ((50, True), (95, False)):
        tracks = WindowTracks(WISHES)
        tracks.follow(read(92, 100, 1000), at(100))
        tracks.follow(WindowReading(week, used, at(LONG), at(100)), at(100))
        assert tracks.list_near()
        tracks.follow(read(3, 1100, 19_000), at(1100))
        assert tracks.list_near() == []
        assert tracks.take_relief() is is_relieved
