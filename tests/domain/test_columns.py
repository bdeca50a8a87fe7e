import pytest

from agent_relay.domain.text.plain import count_columns, split_columns


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("plain", 5), ("漢字", 4), ("é", 1), ("e\u0301", 1)])
def test_text_takes_the_columns_a_terminal_gives_it(text: str, columns: int) -> None:
    """Text laid out by its length runs into the next row where it is Chinese."""
    assert count_columns(text) == columns


@pytest.mark.parametrize(
    ("text", "most", "pieces"),
    [
        ("", 3, []),
        ("abcdefg", 3, ["abc", "def", "g"]),
        ("a项目b", 3, ["a项", "目b"]),
        ("项目", 1, ["项", "目"]),
        ("e\u0301e\u0301e\u0301", 2, ["e\u0301e\u0301", "e\u0301"]),
    ],
)
def test_text_is_split_where_its_columns_are_used_up(text: str, most: int, pieces: list[str]) -> None:
    """What a terminal wraps by itself stands where the next row belongs."""
    assert split_columns(text, most) == pieces
