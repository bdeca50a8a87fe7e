"""What the daemon tells whoever watches survives the wire, and nothing else gets through it."""

import json

import pytest

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.protocol.watch_output import (
    LiveSession,
    WindowUsed,
    build_context,
    cut_screen,
    parse_live,
    render_live,
)
from agent_relay.domain.screen import Row, Screen

LIVE = LiveSession(
    "S",
    7,
    "L1",
    title="a title",
    rows=("one", "", "two"),
    trouble="no disk",
    model="m1",
    context=build_context(61, 100),
    windows=(
        WindowUsed(name="five_hour", minutes=300, used_percent=34.5, resets_at="2026-11-20T21:00:00+00:00"),
    ),
)


@pytest.mark.parametrize("live", [LIVE, LiveSession("S")])
def test_what_is_told_is_read_as_it_was(live: LiveSession) -> None:
    """Both sides are of one version only until the next upgrade."""
    assert parse_live(json.loads(json.dumps(render_live(live)))) == live


def test_a_daemon_of_before_tells_no_lengths_of_windows() -> None:
    """It may serve a watcher that was upgraded: how long a window is, is then unknown."""
    told = render_live(LIVE)
    del told["window_minutes"]
    (window,) = parse_live(told).windows
    assert (window.name, window.minutes) == ("five_hour", 0)


def is_refused(told: object) -> bool:
    """Whether it is none of ours."""
    try:
        parse_live(told)
    except UntrustedDataError:
        return True
    return False


def test_what_is_not_that_is_refused() -> None:
    """A socket may be anybody's by mistake."""
    changes: list[dict[str, object]] = [
        {"session": 1}, {"number": True}, {"rows": "text"}, {"rows": [1]}, {"context": [1]},
        {"context": [1, "x"]}, {"windows": [["n", "x", "y"]]}, {"windows": [["n", 1]]},
        {"window_minutes": ["300"]},
    ]  # fmt: skip
    told = [None, [], {}, *({**render_live(LIVE), **change} for change in changes)]
    assert [one for one in told if not is_refused(one)] == []


def test_a_screen_is_cut_to_what_can_be_sent() -> None:
    """A huge terminal, wide signs and control characters must not break a watcher's screen."""
    rows = (Row("a\x1b[31mb\tc"), Row("日" * 200), Row("x" * 400), *(Row("y"),) * 300, Row("  "))
    title, shown = cut_screen(Screen(rows, 400, title="t\x07" * 300))
    assert len(shown) == 200
    assert shown[0] == "ab c"
    assert shown[1] == "日" * 150
    assert shown[2] == "x" * 300
    assert title == "t" * 100
    assert cut_screen(Screen((Row("a"), Row(""), Row("  ")), 80)) == ("", ("a",))


def test_a_context_has_a_percentage_where_its_room_is_known() -> None:
    """A made-up percentage would be believed."""
    assert build_context(61, 100).percent == 61
    assert build_context(61, 0).percent is None
