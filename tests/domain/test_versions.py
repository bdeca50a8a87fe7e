"""Which version is newer, as far as we number them."""

import pytest

from agent_relay.domain.versions import is_newer


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("0.2.0", "0.1.9"),
        ("0.10.0", "0.9.0"),
        ("1.0", "0.99.99"),
        ("1.0.0", "1.0.0rc1"),
        ("1.0", "1.0.dev3"),
        ("1.0.1", "1.0"),
        ("1.1rc1", "1.0"),
    ],
)
def test_the_newer_one_is_told(newer: str, older: str) -> None:
    """The daemon of the older one gives way, and never the other way round."""
    assert is_newer(newer, older)
    assert not is_newer(older, newer)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.0", "1.0"),
        ("1.0", "1.0.0"),
        ("1.0+a", "1.0"),
        ("", "1.0"),
        ("unknown", "1.0"),
        ("\u0661.0", "0.1"),
    ],
)
def test_the_same_and_the_unknown_are_not_newer(one: str, other: str) -> None:
    """Whoever is not sure leaves the daemon alone."""
    assert not is_newer(one, other)
    assert not is_newer(other, one)
