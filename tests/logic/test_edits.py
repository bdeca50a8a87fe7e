"""Edits are shown as a diff, and two of them meet without bringing back what either deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.logic.edits import diff_texts, merge_texts

TEXTS = st.lists(st.sampled_from("abcdef"), max_size=8).map(
    lambda lines: "".join(f"{one}\n" for one in lines)
)


def test_a_diff_names_what_was_deleted_and_added() -> None:
    """People know the form from git."""
    assert diff_texts("a\nb\nc\n", "a\nx\nc\n", names=("published", "edited")) == (
        "--- published", "+++ edited", "@@ -1,3 +1,3 @@", " a", "-b", "+x", " c",
    )  # fmt: skip
    assert diff_texts("a\n", "a\n", names=("published", "edited")) == ()


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ("a\nb\nc\n", "a\nc\n", "a\nb\n", "a\n"),
        ("a\nb\nc\n", "a\nb\nmine\nc\n", "b\nc\n", "b\nmine\nc\n"),
        ("a\nb\nc\n", "a\nb\nc\n", "a\nx\nc\n", "a\nx\nc\n"),
        ("a\nb\nc\n", "a\nmine\nc\n", "a\ntheirs\nc\n", "a\nmine\nc\n"),
        ("a\nb\n", "b\n", "new\na\nb\n", "new\nb\n"),
        ("a\nb\n", "a\nb\nmine\n", "a\nb\ntheirs\n", "a\nb\ntheirs\nmine\n"),
        ("a\nb\nc\nd\n", "a\nd\n", "a\nb\nx\nc\nd\n", "a\nd\n"),
        ("a\nb\nc\n", "a\nb\nmine\nc\n", "a\nx\n", "a\nmine\n"),
        ("a\nb\n", "b\n", "a\nx\nb\n", "x\nb\n"),
        ("", "", "x\n", "x\n"),
    ],
)
def test_two_edits_meet_line_by_line(base: str, mine: str, theirs: str, merged: str) -> None:
    """The text and the document of one packet may both be edited: what was deleted in either is gone."""
    assert merge_texts(base, mine, theirs) == merged


@given(TEXTS, TEXTS)
def test_an_edit_of_one_side_alone_is_taken_as_it_is(base: str, changed: str) -> None:
    """Nothing is lost or invented where there is nothing to merge."""
    assert merge_texts(base, changed, base) == changed
    assert merge_texts(base, base, changed) == changed


@given(
    st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefgh")), st.sets(st.sampled_from("abcdefgh"))
)
def test_a_line_deleted_by_either_never_comes_back(lines: list[str], one: set[str], other: set[str]) -> None:
    """The promise to the user: what they took out, nobody reads."""

    def write(without: set[str]) -> str:
        return "".join(f"{line}\n" for line in lines if line not in without)

    assert merge_texts(write(set()), write(one), write(other)) == write(one | other)
