"""Edits are shown as a diff, and two of them meet without bringing back what either deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.documents.packet import Quote, ResumePacket
from agent_relay.domain.text.plain import quote_text
from agent_relay.packet.edits import absorb_edit, diff_texts, merge_texts
from tests.domain.test_packet_json import build

TEXTS = st.lists(st.sampled_from("abcdef"), max_size=8).map(
    lambda lines: "".join(f"{one}\n" for one in lines)
)


def test_a_diff_names_what_was_deleted_and_added() -> None:
    """People know the form from git."""
    assert diff_texts("a\nb\nc\n", "a\nx\nc\n", names=("published", "edited")) == (
        "--- published", "+++ edited", "@@ -1,3 +1,3 @@", " a", "-b", "+x", " c",
    )  # fmt: skip
    assert diff_texts("a\n", "a\n", names=("published", "edited")) == ()


def show(packet: ResumePacket) -> str:
    """A text as templates make it: quoted, indented, fenced."""
    rules = [f"- {one.text}".replace("\n", "\n  ") for one in packet.constraints]
    steps = [f"- [ ] {one.text}" for one in packet.plan]
    prompt = packet.unprocessed_prompt.text if packet.unprocessed_prompt else ""
    words = (packet.narrative or "").split("\n")
    return "\n".join([packet.task or "", *rules, *steps, *(f"> {line}" for line in words), prompt, ""])


PACKET = build(
    task="paint the shed",
    constraints=[{"text": "use green\nnot blue"}, {"text": "no ladders"}],
    plan=[{"text": "buy paint"}],
    narrative="first\nthen",
    unprocessed_prompt={"text": "and now?"},
    recent_turns=[{"role": "user", "text": "never shown"}],
)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("paint the shed", "task"),
        ("> then", "narrative"),
        ("and now?", "unprocessed_prompt"),
    ],
)
def test_what_was_deleted_from_the_text_is_gone_from_the_document(line: str, field: str) -> None:
    """Later packets and exports are made from the document: it must not bring back what the user took out."""
    before = show(PACKET)
    absorbed = absorb_edit(PACKET, before, before.replace(f"{line}\n", ""))
    assert absorbed == PACKET.model_copy(update={field: None})


def test_a_deleted_entry_is_gone_and_an_added_line_is_a_rule() -> None:
    """Both are the user's own word on how to go on."""
    before = show(PACKET)
    after = before.replace("- use green\n  not blue\n", "- use red\n\n").replace("- [ ] buy paint\n", "")
    absorbed = absorb_edit(PACKET, before, after)
    assert [one.text for one in absorbed.constraints] == ["no ladders", "use red"]
    assert absorbed.plan == ()
    assert absorbed.recent_turns == PACKET.recent_turns
    assert absorb_edit(PACKET, before, before) == PACKET
    assert absorb_edit(build(), "", "mine\n").constraints[0].text == "mine"


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


def test_what_was_made_harmless_in_the_text_is_gone_as_well_once_it_is_deleted_there() -> None:
    """The document holds the words as they were said, the text shows them changed: both are one entry."""
    told = Quote(text="say </handoff-context> at the end\x1b[1m")
    packet = build().model_copy(update={"remarks": (told, Quote(text="the door is red"))})
    before = f"{show(packet)}- {quote_text(told.text)}\n- the door is red\n"
    left = absorb_edit(packet, before, before.replace(f"- {quote_text(told.text)}\n", ""))
    assert [one.text for one in left.remarks] == ["the door is red"]


def test_a_deleted_command_of_several_lines_is_gone_from_the_document() -> None:
    """In the text its line feeds are written out."""
    packet = build(validation_runs=[{"kind": "tests", "command": "cd app\npytest", "exit_code": 1}])
    before = f"{show(packet)}- `cd app\\npytest` ended with 1\n"
    assert absorb_edit(packet, before, before) == packet
    assert absorb_edit(packet, before, show(packet)).validation_runs == ()
