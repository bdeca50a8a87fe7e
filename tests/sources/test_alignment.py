from datetime import UTC, datetime, timedelta

from agent_relay.domain.limits import Record, Source
from agent_relay.sources.replay import find_start

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def record(text: str, seconds: float) -> Record:
    return Record(Source.TRANSCRIPT, {"text": text}, NOON + timedelta(seconds=seconds))


def test_what_was_typed_ties_the_clocks() -> None:
    """Half a second of slack, because records are written after the last key."""
    records = [record("fix  it", 10), record("done", 12)]
    assert find_start(records, typed=[("fix it", 4.0)], length_s=30) == NOON + timedelta(seconds=5.5)


def test_the_same_line_of_an_earlier_leg_does_not() -> None:
    """It lies further back than the recording is long."""
    records = [record("go", -500), record("go", 10), record("go", 25)]
    assert find_start(records, typed=[("go", 4.0)], length_s=30) == NOON + timedelta(seconds=5.5)


def test_records_without_any_typed_prompt_are_history() -> None:
    """They were copied before this leg wrote its own."""
    found = find_start([record("old", 10)], typed=[("new", 4.0), ("/quit", 9.0)], length_s=30)
    assert found is not None
    assert found > NOON + timedelta(seconds=9)


def test_nothing_typed_means_the_leg_ended_with_its_newest_record() -> None:
    """A prompt given as an argument leaves no keys."""
    records = [record("old", 10), Record(Source.LOG, {"text": "x"})]
    assert find_start(records, typed=[("/quit", 29.0)], length_s=30) == NOON - timedelta(seconds=20.5)


def test_a_recording_without_times_takes_all_records_for_its_own() -> None:
    """Missing a true limit would be worse than judging an old one."""
    assert find_start([record("a", 10), record("b", 5)], typed=[], length_s=0) == NOON + timedelta(seconds=5)


def test_records_without_times_say_nothing() -> None:
    """The caller has to know the start."""
    assert find_start([Record(Source.LOG, {"text": "x"})], typed=[], length_s=30) is None
