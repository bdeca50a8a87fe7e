"""Input of a terminal: the relay key in all its forms, pastes that hide nothing, the half-typed line."""

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_relay.terminal.keystrokes import KeyScanner, kitty_key
from agent_relay.terminal.typed_line import TypedLine

RELAY = 0x1D


def scanner() -> KeyScanner:
    return KeyScanner(RELAY, TypedLine())


@pytest.mark.parametrize(
    "key", [b"\x1d", b"\x1b[93;5u", b"\x1b[93;5:1u", b"\x1b[93:125;5u", b"\x1b[93;69u", b"\x1b[27;5;93~"]
)
def test_the_relay_key_is_found_in_every_form_wherever_it_is_cut(key: bytes) -> None:
    """Agents switch terminals to protocols in which Ctrl-] is no longer one byte."""
    data = b"ab" + key + b"cd"
    for cut in range(len(data) + 1):
        keys = scanner()
        passed, rest = keys.feed(data[:cut])
        if rest is None:
            more, rest = keys.feed(data[cut:])
            passed += more
        else:
            rest += data[cut:]
        assert (passed, rest) == (b"ab", b"cd"), cut


@pytest.mark.parametrize(
    "data", [b"\x1b[93;5:3u", b"\x1b[93;6u", b"\x1b[94;5u", b"\x1b[93u", b"\x1b[27;6;93~", b"]"]
)
def test_other_keys_pass(data: bytes) -> None:
    """The release of the key, other modifiers and other keys belong to the agent."""
    assert scanner().feed(data) == (data, None)


def test_a_relay_key_inside_a_paste_is_text() -> None:
    """Pasted bytes must never open a prompt that eats the rest."""
    keys = scanner()
    data = b"\x1b[200~one\x1dtwo\x1b[201~"
    assert keys.feed(data) == (data, None)
    assert not keys.in_paste
    assert keys.feed(b"\x1dx") == (b"", b"x")


@given(st.lists(st.integers(0, 60), max_size=8))
def test_a_paste_is_recognised_wherever_it_is_cut(cuts: list[int]) -> None:
    """A long paste arrives in many reads."""
    data = b"a\x1b[200~\x1d pasted \x1b[201\x1b[201~b\x1b[A\x1b[200~\x1b[201~end"
    keys, passed = scanner(), b""
    for start, end in itertools.pairwise([0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]):
        part, rest = keys.feed(data[start:end])
        assert rest is None
        passed += part
    assert passed + keys.release() == data
    assert not keys.in_paste


def test_a_lone_escape_is_held_and_given_back() -> None:
    """Escape closes dialogs: it must arrive, a moment later, as itself."""
    keys = scanner()
    assert keys.feed(b"\x1b") == (b"", None)
    assert keys.held == b"\x1b"
    assert keys.release() == b"\x1b"
    assert keys.feed(b"x") == (b"x", None)


def test_without_a_relay_key_everything_passes() -> None:
    """Piped input has no keys."""
    keys = KeyScanner(0, TypedLine())
    assert keys.feed(b"a\x1d\x00b") == (b"a\x1d\x00b", None)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"hello", 5),
        (b"hello\r", 0),
        (b"hello\x7f\x7f", 3),
        (b"a\x7f\x7fb", 1),
        (b"hello\x03", 0),
        (b"hello\x15ab", 2),
        ("grüße".encode(), 5),
        (b"\x1b[A\x1b[B\x1bOP", 0),
        (b"\x1b[I\x1b[<35;10;20M\x1b[M !!", 0),
        (b"\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\\x1bP>|term\x1b\\", 0),
        (b"one\ntwo", 7),
        (b"\x1b\rtwo", 4),
        (b"ab\x1b[13u", 0),
        (b"ab\x1b[13;2u", 3),
        (b"ab\x1b[99;5u", 0),
        (b"ab\x1b[127u", 1),
        (b"ab\x1b[97;1:3u", 2),
        (b"\x1b[228u", 1),
        (b"\x1b[200~line\rline\x1b[201~", 9),
        (b"\x1b[200~line\x1b[201~\r", 0),
    ],
)
def test_the_half_typed_line_is_counted(data: bytes, count: int) -> None:
    """The daemon never types into a line somebody is in the middle of; answers and arrows are no line."""
    for cut in range(len(data) + 1):
        line = TypedLine()
        keys = KeyScanner(RELAY, line)
        for part in (data[:cut], data[cut:]):
            keys.feed(part)
        assert line.count == count, cut


@pytest.mark.parametrize(
    ("data", "again"),
    [
        (b"one\rtwo words", b"two words"),
        ("gr\u00fc\u00dfe".encode(), "gr\u00fc\u00dfe".encode()),
        (b"ab\x1b[Dc\x1bOC\x7fd", b"ab\x1b[Dc\x1b[C\x7fd"),
        (b"ab\x01\x1b[3~\x1b[F\x1b[119;5u", b"ab\x01\x1b[3~\x05\x17"),
        (b"ab\x7f\x7f", b""),
        (b"ab\x03", b""),
        (b"a\tb\x1b[Z\x1b[A\x1b[5;3~\x1a\x1bpc", b"abc"),
        (b"ab\x1b[1;1:2D\x1b[1;1:3D\x1b[1;129:1Dc\x1b[1;5C", b"ab\x1b[D\x1b[Dc"),
        (b"ab\x1b[1;1:1H\x1b[3;1:2~\x1b[3;1:3~\x1b[1;65F\x1b[4;2~", b"ab\x01\x1b[3~\x05"),
        (b"\x1b[228u\x1b[228;1:2u\x1b[228;1:3u", "\u00e4\u00e4".encode()),
        (b"\x1b[228:196;2u\x1b[252;2u\x1b[252;65u\x1b[97;66u", "\u00c4\u00dc\u00dca".encode()),
        (b"\x1b[128512u\x1b[0;;101:769u\x1b[49;2;33u\x1b[55296u\x1b[57344u", "\U0001f600e\u0301!".encode()),
        (b"\x1b[223;2u\x1b[223;65u", "\u00df\u00df".encode()),
        (b"\x1b[57400;129u\x1b[57417u\x1b[57409u", b"1\x1b[D."),
        (b"ab\x1b[57414u", b""),
        (b"ab\x1b[13;3u\x1b[106;5u\x1b[27;2;13~c", b"ab" + b"\x1b[200~\n\x1b[201~" * 3 + b"c"),
        (b"ab\x1b[27;5;99~cc\x1b[104;5ud", b"cc\x08d"),
        (b"one\ntwo\x1b\r", b"one\x1b[200~\n\x1b[201~two\x1b[200~\n\x1b[201~"),
        (b"see \x1b[200~a\r\nb\r\t\x03\x1b[201~!", b"see \x1b[200~a\nb\n\t\x03\x1b[201~!"),
        (b"\x1b[200~a\rb", b"\x1b[200~a\nb"),
        (b"x" * 65537, b""),
        (b"x" * 65537 + b"\rab", b"ab"),
    ],
)
def test_a_half_typed_line_can_be_typed_anew_elsewhere(data: bytes, again: bytes) -> None:
    """Text, pastes and editing as they were; nothing that submits it, or that another agent may obey."""
    for cut in {*range(min(len(data), 40) + 1), max(0, len(data) - 3)}:
        line = TypedLine()
        keys = KeyScanner(RELAY, line)
        for part in (data[:cut], data[cut:]):
            keys.feed(part)
        assert line.render_keys(is_open=keys.in_paste) == again, cut


_PASTED = [b"\x1b[200~", b"one\r", b"two\x03", b"\x1b[201~", b"x", b"\r", b"\n"]


@given(st.lists(st.tuples(st.sampled_from(("first", "second", "clear")), st.sampled_from(_PASTED))))
@example([("first", b"\x1b[200~"), ("second", b"\r"), ("first", b"one\r"), ("first", b"\x1b[201~")])
@example([("first", b"\x1b[200~"), ("clear", b""), ("first", b"one\r"), ("first", b"x")])
def test_a_paste_cut_by_another_terminal_submits_nothing_elsewhere(pieces: list[tuple[str, bytes]]) -> None:
    """Two people share an agent, or the line is seen to be empty, in the middle of a paste."""
    line = TypedLine()
    scanners = {name: KeyScanner(RELAY, line) for name in ("first", "second")}
    for name, piece in pieces:
        if name == "clear":
            line.clear()
        else:
            scanners[name].feed(piece)
    for is_open in (False, True):
        keys = line.render_keys(is_open=is_open)
        typed = re.sub(rb"\x1b\[200~.*?(?:\x1b\[201~|\Z)", b"", keys, flags=re.DOTALL)
        assert not set(typed) & set(b"\r\n\x03\x1b")
        assert (keys.rfind(b"\x1b[200~") > keys.rfind(b"\x1b[201~")) is is_open


def test_a_paste_whose_marks_an_agent_did_not_want_has_them_again() -> None:
    """Without them its line ends would submit the line, here as where they are typed again."""
    keys = scanner()
    keys.bare = True
    assert keys.feed(b"ab\x1b[200~one\rtwo\n\x1b[201~c\n")[0] == b"abone two c\n"
    assert keys.line.render_keys() == b"ab\x1b[200~one\ntwo\n\x1b[201~c\x1b[200~\n\x1b[201~"


@given(st.binary(max_size=300), st.integers(1, 9))
def test_any_bytes_pass_whole_up_to_the_relay_key(data: bytes, size: int) -> None:
    """Input is the user's: nothing is changed, reordered or lost."""
    keys, passed = scanner(), b""
    for start in range(0, len(data), size):
        part, rest = keys.feed(data[start : start + size])
        passed += part
        if rest is not None:
            assert data.startswith(passed)
            return
    assert passed + keys.release() == data


@given(
    st.sampled_from([b"", b"ab", b"\x1b", b"\x1b[", b"\x1b[200~", b"\x1b]11;", b"\x1b[<0;1"]),
    st.text("ab ;1~[M\r\x1b\x1d\x7f", max_size=8).map(str.encode),
    st.booleans(),
)
def test_only_what_feeding_would_not_change_is_plain(before: bytes, data: bytes, sift: bool) -> None:  # noqa: FBT001
    """What is plain goes to the child unread, so it must be all text: no key, no paste, no answer's part."""
    keys = scanner()
    keys.feed(before, sift=sift)
    count = keys.line.count
    is_plain = keys.is_plain(data)
    assert is_plain == (before in (b"", b"ab") and not sift and not set(data) & set(b"\r\x1b\x1d\x7f"))
    if is_plain:
        assert keys.feed(data) == (data, None)
        assert keys.line.count == count + len(data)


@pytest.mark.size("every")
def test_large_input_is_counted_quickly() -> None:
    """A paste of megabytes into a terminal without bracketed paste must not stall the loop."""
    keys = scanner()
    for _ in range(200):
        keys.feed(b"some text\n" * 6000)
    assert keys.line.count == 200 * 6000 * 10


def test_the_key_is_passed_on_in_the_protocol_the_program_asked_for() -> None:
    """Pressing it twice sends it to the agent, which may understand only one form."""
    assert kitty_key(RELAY) == b"\x1b[93;5u"
    assert kitty_key(0x01) == b"\x1b[97;5u"


@given(st.lists(st.integers(0, 60), max_size=8))
def test_pastes_lose_their_marks_where_that_is_wanted_wherever_they_are_cut(cuts: list[int]) -> None:
    """A program that did not ask for the marks would read them as words."""
    data = b"\x1b[200~\x1d pasted \x1b[201\x1b[201~"
    keys, passed = scanner(), b""
    keys.bare = True
    for start, end in itertools.pairwise(
        [0, *sorted(min(max(cut, 6), len(data)) for cut in cuts), len(data)]
    ):
        part, rest = keys.feed(data[start:end])
        assert rest is None
        passed += part
    assert passed + keys.release() == b"\x1d pasted \x1b[201"
    assert not keys.in_paste
    assert keys.line.count == 14
    assert keys.feed(b"\x1b[200~a\x1b[201~") == (b"\x1b[200~a\x1b[201~", None)


def test_what_a_paste_loses_with_its_marks() -> None:
    """What a client read is one piece, whatever is in it; line ends would be the Enter key."""
    for read, passed in (
        ((b"a\x1b[200~b\x1b[201~c\x1b[200~d\x1b[201~",), (b"abcd",)),
        ((b"\x1b[200~a\r\nb\rc\nd\x1b[201~",), (b"a  b c d",)),
        # An escape character before the pause let line ends through.
        ((b"\x1b[200~b\x1b", b"rm\rx\x1b[201~"), (b"b", b"\x1brm x")),
    ):
        keys = scanner()
        keys.bare = True
        for data, expected in zip(read, passed, strict=True):
            assert keys.feed(data) == (expected, None)
            assert keys.release() == b""


def test_the_end_of_a_paste_is_found_even_if_its_mark_comes_in_pieces_far_apart() -> None:
    """Else the relay key would be text from then on."""
    keys = scanner()
    keys.bare = True
    assert keys.feed(b"\x1b[200~b\x1b[2") == (b"b", None)
    assert keys.release() == b""
    assert keys.feed(b"01~\x1d") == (b"", b"")


@pytest.mark.parametrize(
    "key",
    [
        b"\x1b[1089;5u",  # Ctrl with a letter of another alphabet
        b"\x1b[57442;5u",  # Ctrl itself, where a program asked for all keys
        b"\x1b[1114112u",  # one above the last character there is
        b"\x1b[" + b"1" * 5000 + b"u",
        b"\x1b[97;" + b"5" * 5000 + b"u",
        b"\x1b[93;" + b"5" * 5000 + b"u",
        b"\x1b[93;5:" + b"1" * 5000 + b"u",
        b"\x1b[97;1;" + b"1" * 5000 + b"u",
        b"\x1b[97:" + b"1" * 5000 + b";2u",
        b"\x1b[27;5;" + b"1" * 5000 + b"~",
        b"\x1b[200;" + b"9" * 5000 + b"~",
    ],
)
def test_no_number_in_a_key_is_too_large_to_pass(key: bytes) -> None:
    """A key nobody here knows is the agent's; whoever reads its number must not fall over it."""
    keys = scanner()
    assert keys.feed(b"a" + key + b"b") == (b"a" + key + b"b", None)
    assert keys.line.count == 2
