"""The small tools all readers share: lenient decoding, diff counts, words."""

from datetime import UTC, datetime

import msgspec
import pytest

from agent_relay.transcripts.fact_reading import Collector, parse_status
from agent_relay.transcripts.lenient_json import (
    LineCounter,
    clip,
    compile_wrappers,
    count_hunks,
    count_lines,
    count_replacement,
    count_unified,
    decode_raw,
    decode_text,
    get_whole,
    iterate_records,
    join_text,
    parse_moment,
    strip_wrappers,
)


def test_times_are_aware_or_unknown() -> None:
    """Agents write ISO strings, seconds and milliseconds; nonsense is no time and no error."""
    rows: list[tuple[object, datetime | None]] = [
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        (1_795_168_800, datetime(2026, 11, 20, 10, tzinfo=UTC)),
        (1_795_168_800_000, datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("yesterday", None),
        (True, None),
        (None, None),
        (5, None),
        (10**30, None),
        (10**400, None),
        (-(10**400), None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        (float("nan"), None),
        (float("inf"), None),
    ]
    assert [(value, parse_moment(value)) for value, _ in rows] == rows


def test_broken_values_are_nothing() -> None:
    """A reader asks for what it needs and gets it, or nothing."""
    assert decode_raw(msgspec.Raw()) is None
    assert decode_raw(msgspec.Raw(b"{torn")) is None
    assert decode_raw(msgspec.Raw(b'{"a":1}')) == {"a": 1}
    assert decode_text("{torn") is None
    assert decode_text('"half of a pair \\ud83d"') == "half of a pair \N{REPLACEMENT CHARACTER}"
    assert decode_raw(msgspec.Raw(rb'"caf\udce9"')) == r"caf\xe9"
    assert get_whole({"a": True}, "a") is None
    assert get_whole({"a": 3}, "a") == 3
    assert get_whole({"a": 10**400}, "a") is None
    assert join_text("as it is") == "as it is"
    assert join_text({"no": "list"}) == ""
    assert join_text([{"type": "text", "text": "a"}, {"type": "image"}, 7]) == "a"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (rb'{"a":"cut \ud83d"}', "cut \N{REPLACEMENT CHARACTER}"),
        (rb'{"a":"\uDE00 cut"}', "\N{REPLACEMENT CHARACTER} cut"),
        (
            rb'{"a":"\ud83d\ude00 \ud83d\ud83d\ude00"}',
            "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}\N{GRINNING FACE}",
        ),
        (rb'{"a":"caf\udce9.txt"}', r"caf\xe9.txt"),
        (rb'{"a":"\\ud83d \ud83d"}', "\\ud83d \N{REPLACEMENT CHARACTER}"),
        (b'{"a":"caf\xe9"}', "caf\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_line_with_half_a_character_is_read(line: bytes, text: str) -> None:
    """Agents cut long output in the middle of an emoji: the prompt or answer around it must not be lost."""
    counter = LineCounter()
    assert list(iterate_records([line], msgspec.json.Decoder(dict[str, str]), counter)) == [(1, {"a": text})]
    assert counter.skipped == 0


class _Said(msgspec.Struct):
    text: str = ""
    name: str = ""
    more: msgspec.Raw = msgspec.Raw()


_ODD = (b'"\xff":1', b'"name":"\xff"', b'"more":"\xff"', b'"more":{"\xff":1}', b'"name":' + b"9" * 500)


@pytest.mark.parametrize("odd", _ODD)
@pytest.mark.parametrize("said", [b'"text":"said"', b'"text":5'])
def test_a_line_with_a_wrong_type_and_broken_characters_is_read_or_counted(odd: bytes, said: bytes) -> None:
    """One odd line raised, and the handoff of the session that had it failed."""
    counter = LineCounter()
    line = b"{" + said + b"," + odd + b"}\n"
    found = [one.text for _, one in iterate_records([line], msgspec.json.Decoder(_Said), counter)]
    assert found == ([] if counter.skipped else ["said" if said.endswith(b'said"') else ""])


def test_a_replacement_is_counted_like_a_diff() -> None:
    """Lines that stay are not changed."""
    rows: dict[tuple[str, str], tuple[int, int]] = {
        ("", "a\nb\n"): (2, 0),
        ("a\nb", ""): (0, 2),
        ("a\nx\nc", "a\ny\nz\nc"): (2, 1),
        ("same", "same"): (0, 0),
        ("a\na", "a"): (0, 1),
        ("", ""): (0, 0),
    }
    assert {(old, new): count_replacement(old, new) for old, new in rows} == rows


def test_a_large_replacement_is_counted_in_linear_time() -> None:
    """A generated file of 200,000 lines must not hold up a handoff."""
    lines = "line\n" * 200_000
    assert count_replacement(lines, f"{lines}end\n") == (1, 0)


def test_diffs_are_counted_with_and_without_headers() -> None:
    """Headers look like changes."""
    assert count_unified("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n+z") == (2, 1)
    assert count_unified("--- a\n+++ b\n-x\n+y") == (1, 1)
    assert count_hunks(["+a", None, "-b", " c"]) == (1, 1)
    assert (count_lines("a\nb"), count_lines("a\n"), count_lines("")) == (2, 1, 0)


def test_long_output_keeps_its_ends() -> None:
    """The command's beginning says what it is, its end what went wrong."""
    text = clip("a" * 5000 + "b" * 5000)
    assert text.startswith("a" * 2000 + "\n[… 2000 characters left out …]\n")
    assert text.endswith("b" * 5000)
    assert clip("short") == "short"


def test_output_is_cut_between_lines_and_words() -> None:
    """Half a key looks like no key: what a cut would leave of it goes too."""
    key = "sk-ant-" + "x" * 80
    for before in range(90):
        lines = clip(f"{'a' * before}\n" + f"{key}\n" * 200)
        assert lines.count(f"{key}\n") * 80 == lines.count("x")
        for mark in (", ", ";", " and "):
            words = clip("a" * before + f"{mark}password = {key}" * 200)
            assert words.count(f"password = {key}") * 80 == words.count("x")
    assert clip("x" * 9000).endswith("]\n" + "x" * 6000)


def test_nested_and_unclosed_wrappers_are_taken_out() -> None:
    """An element cut by the end of the message hides the rest."""
    wrappers = compile_wrappers("note")
    assert strip_wrappers("a <note x='1'>b</note> c <note>d", wrappers) == "a  c"
    assert strip_wrappers(" a < b ", wrappers) == "a < b"


def test_unknown_words_for_a_status_lose_no_step() -> None:
    """A step of unknown status is still to do."""
    assert parse_status("IN_PROGRESS") == "in_progress"
    assert parse_status("sleeping") == "pending"


def test_what_has_no_path_and_no_prompt_is_no_fact() -> None:
    """Half a record says nothing."""
    facts = Collector(agent="a")
    facts.touch("", "read", "t")
    facts.see(None)
    facts.answered = False
    built = facts.build(native_id="", cwd="")
    assert built.files == ()
    assert built.unprocessed_prompt is None
    assert built.started_at is None


def test_a_prompt_sent_twice_waits_once() -> None:
    """Retrying is not asking for it twice."""
    facts = Collector(agent="a")
    facts.hear_user("port it", "t:1")
    facts.hear_user("port it", "t:2")
    built = facts.build(native_id="", cwd="")
    assert built.unprocessed_prompt is not None
    assert built.unprocessed_prompt.text == "port it"
    assert len(built.conversation) == 2
