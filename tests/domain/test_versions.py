"""Which version is newer, as far as we number them."""

import itertools

import pytest

from agent_relay.domain.names import find_newest, find_number, is_newer, is_within


def test_the_newer_one_is_told() -> None:
    """The daemon of the older one gives way, and never the other way round."""
    rising = ("0.1.9", "0.2.0", "0.9.0", "0.10.0", "0.99.99", "1.0.0rc1", "1.0", "1.0.1", "1.1rc1")
    pairs = [*itertools.combinations(rising, 2), ("1.0.dev3", "1.0")]
    assert [pair for pair in pairs if is_newer(*pair) or not is_newer(*reversed(pair))] == []


def test_the_same_and_the_unknown_are_not_newer() -> None:
    """Whoever is not sure leaves the daemon alone."""
    for pair in ("1.0 1.0", "1.0 1.0.0", "1.0+a 1.0", " 1.0", "unknown 1.0", "\u0661.0 0.1"):
        one, _, other = pair.partition(" ")
        assert not is_newer(one, other)
        assert not is_newer(other, one)


@pytest.mark.parametrize(
    ("version", "start", "before", "within"),
    [
        ("2.1.330", "2.1.198", "", True),
        ("2.1.198", "2.1.198", "", True),
        ("2.1.197", "2.1.198", "", False),
        ("2.1.330", "", "2.1.330", False),
        ("2.1.329", "2.1.198", "2.1.330", True),
        ("2.1.330", "", "", True),
        ("unknown", "2.1.198", "", False),
        ("", "", "", True),
    ],
)
def test_a_range_begins_with_its_first_version_and_ends_before_its_last(
    version: str, start: str, before: str, *, within: bool
) -> None:
    """What is data for some versions must not be read into others."""
    assert is_within(version, start=start, before=before) is within


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("2.1.330 (Claude Code)", "2.1.330"),
        ("codex-cli 0.169.0", "0.169.0"),
        ("opencode v1.18.33, linux", "1.18.33"),
        ("git version 2.39.5", "2.39.5"),
        ("no version", ""),
        ("", ""),
    ],
)
def test_the_number_is_found_in_what_a_program_says(said: str, number: str) -> None:
    """Each has words of its own around it."""
    assert find_number(said) == number


def test_the_newest_of_several_is_found_in_any_order() -> None:
    """By their numbers, not by their letters."""
    assert find_newest(["2.1.197", "2.1.1330", "2.1.330"]) == "2.1.1330"
    assert find_newest([]) == ""
