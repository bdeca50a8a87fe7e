import pytest

from agent_relay.logic.columns import count_columns


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("plain", 5), ("漢字", 4), ("é", 1), ("e\u0301", 1)])
def test_text_takes_the_columns_a_terminal_gives_it(text: str, columns: int) -> None:
    """Text laid out by its length runs into the next row where it is Chinese."""
    assert count_columns(text) == columns
