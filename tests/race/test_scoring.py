"""The winner is who passes the test with the smaller diff, sooner; the reasons say so."""

from agent_relay.race._events import RaceBody
from agent_relay.race.model import build_verdict
from tests.support.races import begin, settle, tell


def score(*bodies: RaceBody, test: str = "make test") -> tuple[int, tuple[int, ...], tuple[str, ...]]:
    verdict = build_verdict(tell(*begin("ann", "bob", "eve", test=test), *bodies))
    return verdict.winner, verdict.order, verdict.reasons


def test_the_test_decides_before_size_and_time() -> None:
    """A small quick change that breaks the test is worth nothing."""
    assert score(*settle(1, test=1, lines=1, spent_ms=1000), *settle(2), *settle(3, lines=11)) == (
        2,
        (2, 3, 1),
        (
            "test passed, 10 lines in 1 file, 40.0 s; 1 line less than 3-eve",
            "test passed, 11 lines in 1 file, 40.0 s; 1-ann failed the test",
            "test failed (exit 1), 1 line in 1 file, 1.0 s",
        ),
    )


def test_equal_sizes_are_decided_by_time_and_equal_times_by_the_order_given() -> None:
    """A tie is said, not hidden behind an order that looks like a judgement."""
    assert score(*settle(1, files=2), *settle(2, files=2), *settle(3, spent_ms=39_500)) == (
        3,
        (3, 1, 2),
        (
            "test passed, 10 lines in 1 file, 39.5 s; as many lines as 1-ann, 0.5 s faster",
            "test passed, 10 lines in 2 files, 40.0 s; a tie with 2-bob, broken by the order given",
            "test passed, 10 lines in 2 files, 40.0 s",
        ),
    )


def test_whoever_changed_nothing_is_last_and_never_wins() -> None:
    """Where the test passed before, the smallest diff is the empty one."""
    winner, order, reasons = score(
        *settle(1, files=0, lines=0), *settle(2, test=1), *settle(3, test=1, how="limited", why="all rest")
    )
    assert score(*settle(1, files=0), *settle(2, files=0), *settle(3, files=0))[2] == (
        "changed nothing (finished)",
        "changed nothing (finished)",
        "changed nothing (finished)",
    )
    assert (winner, order) == (0, (2, 3, 1))
    assert reasons[1] == (
        "test failed (exit 1), limited: all rest, 10 lines in 1 file, 40.0 s; 1-ann changed nothing"
    )
    assert reasons[2] == "changed nothing (finished)"


def test_a_test_that_did_not_end_by_itself_says_why() -> None:
    """An exit code of a test that was ended says nothing."""
    _, _, reasons = score(*settle(1), *settle(2), *settle(3, test=143, test_why="not done within 600 s"))
    assert reasons[2] == "test not done within 600 s, 10 lines in 1 file, 40.0 s"


def test_without_a_test_whoever_finished_goes_first() -> None:
    """There is nothing else to judge by."""
    told = [*settle(1, how="timed-out", test=None), *settle(2, test=None), *settle(3, lines=12, test=None)]
    assert score(*told, test="") == (
        2,
        (2, 3, 1),
        (
            "finished, 10 lines in 1 file, 40.0 s; 2 lines less than 3-eve",
            "finished, 12 lines in 1 file, 40.0 s; 1-ann did not finish",
            "timed out, 10 lines in 1 file, 40.0 s",
        ),
    )
