"""What a person reads while every agent rests, in whatever room there is."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.client.attach.rest_status import KeptText, RestStatus, fit, list_lines, render_countdown
from agent_relay.domain.text.plain import count_columns

NOW = datetime(2026, 11, 24, 18, 20, tzinfo=UTC)
AGENTS = [
    {"agent": "ann", "why": "rests until 21:00", "can": False},
    {"agent": "bob", "why": "rests until 22:10", "can": True},
    {"agent": "cas", "why": "not installed", "can": False},
]
RESTS = {
    "until": (NOW + timedelta(hours=2, minutes=40)).isoformat(),
    "when": "21:00",
    "first": "ann",
    "agents": AGENTS,
    "plan": "Work will not continue automatically.",
    "back": "",
    "agreed": False,
    "can_agree": True,
}
KEYS = (
    "w continue at reset   a always continue at reset   n use another agent now   v show its screen   l leave"
)


def _rest(*, has_leg: bool = True, **changes: object) -> RestStatus:
    return RestStatus({"rest": RESTS | changes}, has_leg=has_leg)


def test_who_rests_until_when_is_said_with_the_keys_that_choose() -> None:
    """Nothing has to be looked up: the first reset, the others, what happens then, what can be pressed."""
    assert list_lines(_rest(), NOW) == [
        "Every agent rests. First reset: ann at 21:00, in 2:40:00",
        "ann rests until 21:00   bob rests until 22:10   cas not installed",
        "Work will not continue automatically.",
        *("", ""),
        KEYS,
    ]


def test_of_what_is_kept_only_its_length_is_said_until_somebody_asks() -> None:
    """It may be a password, and somebody may look on."""
    lines = list_lines(_rest(), NOW, kept=KeptText("secret"))
    told = "6 typed characters are kept for the agent that continues."
    assert lines[3] == f"{told}   k show it   d discard it"
    lines = list_lines(_rest(), NOW, kept=KeptText("secret", is_shown=True))
    assert lines[3] == "Kept for the agent that continues: secret   k hide it   d discard it"


def test_only_keys_that_do_something_are_named() -> None:
    """A key that is offered and does nothing makes every other one doubtful."""
    alone = [{"agent": "ann", "why": "rests until you say otherwise (its credits)", "can": False}]
    unknown = _rest(has_leg=False, agents=alone, until="", first="", when="", can_agree=False)
    assert list_lines(unknown, NOW)[0] == "Every agent rests, and no reset is known."
    assert list_lines(unknown, NOW)[-1] == "l leave"
    assert list_lines(_rest(agreed=True), NOW)[-1].startswith("w do not continue at reset   a always")
    always = list_lines(_rest(agreed=True, can_agree=False), NOW)
    assert always[-1].startswith("w do not continue at reset   n use another")


def test_who_is_back_is_offered_with_enter() -> None:
    """The countdown is over; the name and one key are left."""
    lines = list_lines(_rest(back="ann"), NOW)
    assert lines[0] == "ann is available again. Press Enter to continue."
    assert (lines[2], lines[-1].split("   ")[0]) == ("", "Enter continue")


def test_the_other_agents_are_numbered() -> None:
    """Choosing one is as good as --yes: why it would not be chosen stands beside it."""
    assert list_lines(_rest(), NOW, chooses=True)[1:] == [
        "Continue with which agent? Press its number; a resting agent is started anyway.",
        "1 bob (rests until 22:10)",
        "Esc  back",
    ]


def test_in_a_small_window_what_matters_least_goes_first() -> None:
    """Twenty columns and six rows are a telephone: the reset and the keys stay."""
    rows = fit(list_lines(_rest(), NOW), 10, 20)
    assert rows == [
        "Every agent rests.",
        "First reset: ann at",
        "21:00, in 2:40:00",
        "w continue at reset",
        "a always continue",
        "at reset",
        "n use another agent",
        "now",
        "v show its screen",
        "l leave",
    ]


def test_signs_of_two_columns_are_broken_where_the_window_ends() -> None:
    """A folder's name may be of them: half of each row was written over by the next one."""
    said = RestStatus(
        {"rest": RESTS | {"back": "bob", "failure": "cannot write /项目/项目/项目"}}, has_leg=True
    )
    assert fit(list_lines(said, NOW)[:1], 24, 21) == [
        "No agent took over:",
        "cannot write",
        "/项目/项目/项目.",
        "Press Enter to try",
        "bob again.",
    ]
    assert fit(["项目项目项目项目"], 24, 8) == ["项目项", "目项目", "项目"]


def test_a_countdown_reads_as_a_clock() -> None:
    """It is looked at from across the room."""
    said = {-5: "0:00:00", 59.9: "0:00:59", 8000: "2:13:20", 90000: "1 day 1:00:00", 200000: "2 days 7:33:20"}
    assert {left_s: render_countdown(left_s) for left_s in said} == said


@given(
    st.dictionaries(
        st.sampled_from(list(RESTS)), st.none() | st.integers() | st.text() | st.lists(st.text())
    ),
    st.integers(1, 12),
    st.integers(1, 30),
)
def test_whatever_a_daemon_says_fits_the_window(said: dict[str, object], rows: int, cols: int) -> None:
    """Another version answers, or names hold what moves a cursor."""
    shown = fit(list_lines(RestStatus({"rest": RESTS | said}, has_leg=True), NOW), rows, cols)
    assert len(shown) <= rows
    # A sign of two columns has no place in a window of one.
    assert all(count_columns(row) <= max(2, cols - 1) and row.isprintable() for row in shown)
