"""Identifiers sort by time and are safe as file names."""

import pytest

from agent_relay.domain.names import build_ulid, is_ulid, read_moment_ms


def test_an_identifier_says_its_time_first() -> None:
    """Folders of sessions sorted by name are sorted by age."""
    assert build_ulid(0, bytes(10)) == "0" * 26
    assert build_ulid(1_469_918_176_385, bytes(range(10))) == "01ARYZ6S41" + "000G40R40M30E209"
    assert build_ulid(1, bytes(10)) > build_ulid(0, b"\xff" * 10)


@pytest.mark.parametrize(("at_ms", "randomness"), [(-1, bytes(10)), (1 << 48, bytes(10)), (0, bytes(9))])
def test_what_does_not_fit_is_refused(at_ms: int, randomness: bytes) -> None:
    """A shorter identifier would sort wrongly and could meet another."""
    with pytest.raises(ValueError, match="48 bits of time"):
        build_ulid(at_ms, randomness)


@pytest.mark.parametrize(
    "text", ["", "../../../etc/passwd", "0" * 25, "0" * 27, "0" * 25 + "I", "0" * 25 + "/"]
)
def test_other_words_are_no_identifiers(text: str) -> None:
    """A peer's word becomes part of a path only when it can be nothing else."""
    assert is_ulid("0" * 26)
    assert not is_ulid(text)


def test_the_moment_of_an_id_can_be_read() -> None:
    """What is older than an id cannot know of it."""
    assert read_moment_ms(build_ulid(1_790_000_000_123, bytes(10))) == 1_790_000_000_123
    with pytest.raises(ValueError, match="no ULID"):
        read_moment_ms("soon")
