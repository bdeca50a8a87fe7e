import pytest

from agent_relay.detect.screen_state import find_notices
from agent_relay.domain.documents.rules import Feed
from agent_relay.domain.screen import Row, Screen


def find(place: dict[str, object], *rows: str | Row) -> list[str]:
    feed = Feed.parse({"name": "f", "source": "screen", "place": place})
    screen = Screen(tuple(row if isinstance(row, Row) else Row(row) for row in rows), 40)
    return [notice.text for notice in find_notices((feed,), screen)]


def test_a_wrapped_notice_is_one_text() -> None:
    """Agents wrap at the width; a reset must not be lost with the second row."""
    rows = ("! limit reached, try", "again at 9pm.", "", "later words")
    assert find({"starts": "^! ", "join": 4}, *rows) == ["limit reached, try again at 9pm."]
    assert find({"starts": "^! "}, *rows) == ["limit reached, try"]
    assert find({"starts": "^! ", "join": 4, "stops": "^again"}, *rows) == ["limit reached, try"]


def test_a_no_break_space_is_a_space() -> None:
    """One agent paints one before its notices."""
    assert find({"starts": "^ ! "}, " !\u00a0limit") == ["limit"]


def test_characters_painted_over_gaps_are_gaps() -> None:
    """A spinner shines through the blanks of a row."""
    assert find({"starts": "^ ", "blanks": "*"}, " *Rate*limit* reached") == ["Rate limit reached"]


def test_the_colour_must_be_the_agent_s_own() -> None:
    """Tool output has the same words in the default colour."""
    place = {"starts": "^! ", "colour": ["palette:1"]}
    assert find(place, Row("! limit", color="palette:1")) == ["limit"]
    assert find(place, Row("! limit")) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["+--+", "! limit", "1. go on", "2. stop"], ["limit"]),
        (["! limit", "1. go on", "2. stop"], []),
        (["text", "! limit", "1. go on", "2. stop"], []),
        (["+--+", "! limit", "1. go on"], []),
        (["+--+", "! limit", "1. go on", "2. stop", "> type here"], []),
    ],
)
def test_a_dialog_is_known_by_what_stands_around_it(rows: list[str], expected: list[str]) -> None:
    """The row above, the choices below, and no prompt under it all."""
    place = {
        "starts": "^! ",
        "above": r"^\+-+\+$",
        "followed": [{"pattern": "^1", "rows": 3}, {"pattern": "stop", "rows": 3}],
        "unless_below": "type here",
    }
    assert find(place, *rows) == expected


def test_a_notice_can_be_bound_to_the_rows_under_a_frame() -> None:
    """Only the last frame counts: older ones are history."""
    place = {"starts": "^ ", "under": {"pattern": "^===", "rows": 1}}
    assert find(place, " old", "===", " older", "text", "===", " new", " beyond") == ["new"]
    assert find(place, " new") == []
