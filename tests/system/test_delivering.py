"""What is said when a receiver does not take what it is sent."""

from agent_relay.system.net.delivery_report import (
    NO_REPORT,
    Count,
    Receiver,
    build_delivery_figures,
    update_report,
)

HOOK = Receiver("webhook", "The webhook", "event", "events")


def tell(*moments: tuple[float, Count]) -> list[tuple[float, str]]:
    """The lines said of these counts, each with its moment."""
    said, lines = NO_REPORT, []
    for at_s, count in moments:
        line, said = update_report(HOOK, count, said, at_s)
        lines += [(at_s, line)] if line else []
    return lines


def test_nothing_is_said_while_all_arrives() -> None:
    """A line for each event would be a log nobody reads."""
    assert tell((0, Count()), (1, Count(taken=1)), (900, Count(taken=2))) == []


def test_the_first_failure_the_first_loss_and_the_recovery_are_said_at_once() -> None:
    """A wrong address is found while its writer still looks."""
    assert tell(
        (0, Count(trouble="it answered 500")),
        (1, Count(trouble="it answered 500")),
        (15, Count(lost=1, trouble="it answered 500")),
        (16, Count(taken=1, lost=1)),
    ) == [
        (0, "The webhook does not take events: it answered 500. They are tried again."),
        (15, "The webhook does not take events: it answered 500. 1 event given up so far."),
        (16, "The webhook takes events again."),
    ]


def test_what_is_refused_is_lost_with_the_first_word() -> None:
    """It is not tried again, so nothing must say that it is; the next one is no news."""
    assert tell(
        (0, Count(lost=1, trouble="it answered 404")), (1, Count(lost=2, trouble="it answered 404"))
    ) == [(0, "The webhook does not take events: it answered 404. 1 event given up so far.")]


def test_a_receiver_that_is_gone_for_a_night_is_told_of_every_few_minutes() -> None:
    """Hundreds of lost events must not fill a terminal; none may go untold."""
    lines = tell(*((float(at_s), Count(lost=at_s + 1, trouble="it is gone")) for at_s in range(1000)))
    assert [at_s for at_s, _ in lines] == [0, 300, 600, 900]
    assert lines[-1][1] == "The webhook does not take events: it is gone. 901 events given up so far."


def test_one_that_fails_and_works_by_turns_does_not_flood() -> None:
    """Each time would be two lines for every event; what it lost meanwhile is said later."""
    bad = "it answered 500"
    lines = tell(
        (0, Count(trouble=bad)),
        (1, Count(taken=1)),
        (2, Count(taken=1, lost=1, trouble=bad)),
        (3, Count(taken=2, lost=1)),
        (4, Count(taken=2, lost=2, trouble=bad)),
        (5, Count(taken=3, lost=2)),
        (70, Count(taken=4, lost=2)),
    )
    assert [at_s for at_s, _ in lines] == [0, 1, 70]
    assert lines[2][1] == "The webhook takes events again. 2 events given up so far."


def test_trouble_that_began_right_after_a_word_is_said_once_that_is_past() -> None:
    """Being quiet for a while must not become being silent."""
    bad = "it answered 500"
    lines = tell(
        (0, Count(trouble=bad)), (1, Count(taken=1)), (2, Count(1, trouble=bad)), (62, Count(1, trouble=bad))
    )
    assert [at_s for at_s, _ in lines] == [0, 1, 62]


def test_figures_tell_what_was_taken_and_given_up_by_receiver() -> None:
    """An alert is built on them: a receiver that fails cannot be told so by itself."""
    figures = build_delivery_figures({"webhook": Count(5, 2, "it is gone"), "otlp": Count(3)})
    assert {one.name: dict(one.values) for one in figures} == {
        "deliveries": {
            ("webhook", "taken"): 5.0,
            ("webhook", "given_up"): 2.0,
            ("otlp", "taken"): 3.0,
            ("otlp", "given_up"): 0.0,
        },
        "delivery_failing": {("webhook",): 1.0, ("otlp",): 0.0},
    }
