"""Records come out the same however their bytes are cut, and broken ones harm only themselves."""

import itertools
import os
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.sources.record_framing import Framing, build_framer

FRAMINGS: tuple[Framing, ...] = get_args(Framing)
SAMPLES = os.path.join(os.path.dirname(__file__), "samples_framing")

HOOK = (
    b'{"at":"2026-11-20T10:23:48.391Z","payload":{"hook_event_name":"StopFailure","error":"rate_limit",'
    b'"last_assistant_message":"You\'ve hit your session limit \xc2\xb7 resets 12:23pm (UTC)"}}\n'
)
ROLLOUT = (
    b'{"timestamp":"2026-11-20T10:33:46.010Z","ordinal":9,"type":"event_msg","payload":'
    b'{"type":"task_complete","error":{"message":"You\xe2\x80\x99ve hit your usage limit",'
    b'"codex_error_info":"usage_limit_exceeded"}}}\n'
)
DEBUG_LOG = (
    b"[2026-11-20T10:31:02.100Z] [DEBUG] Experiments loaded {\n  experimentIds: [],\n  flags: []\n}\n"
    b"[2026-11-20T10:31:02.981Z] [WARN] Attempt 1 failed: Your quota will reset after 7h23m19s.."
    b" Retrying after 30548425ms...\n"
)
LOGFMT = (
    b'timestamp=2026-11-20T10:41:32.175Z level=INFO run=af14 message="all LSPs are disabled"\n'
    b'timestamp=2026-11-20T10:41:33.001Z level=ERROR run=af14 message="stream error" error="Rate limit"\n'
)
EVENTS = (
    b'data: {"type":"server.connected","properties":{}}\n\n'
    b": a comment\nevent: x\nid: 7\n"
    b'data: {"type":"session.status","properties":{"status":{"type":"retry","next":1795174945539}}}\r\n\r\n'
    b'data: {"type":\rdata: "session.idle"}\r\r'
)
STREAM = b'{\n  "a": "}\\"{",\n  "b": {\n    "c": [1]\n  }\n}\n{"d":{}}{"e":1}\n'


def run(framing: Framing, chunks: list[bytes], max_bytes: int = 4096) -> tuple[list[object], int]:
    """What a stream cut like that gives: records, boundary."""
    framer = build_framer(framing, max_bytes)
    records: list[object] = []
    for chunk in chunks:
        records += framer.feed(chunk)
    records += [data for _, data in framer.flush()]
    return records, framer.boundary


def cut(text: bytes, at: list[int]) -> list[bytes]:
    """The text in pieces, cut at those places."""
    places = [0, *sorted({place % (len(text) + 1) for place in at}), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


@pytest.mark.parametrize("framing", FRAMINGS)
@given(
    pieces=st.lists(
        st.sampled_from(
            [
                HOOK,
                ROLLOUT,
                DEBUG_LOG,
                LOGFMT,
                EVENTS,
                STREAM,
                b"\n",
                b"\r\n",
                b"\\",
                b'"',
                b"{",
                b"}",
                b"\n{",
                b"\xff\xfe",
                b"[1]\n",
                b'{"x":"' + b"y" * 300 + b'"}\n',
                b"data: 1\n\n",
            ]
        )
        | st.binary(max_size=8),
        max_size=12,
    ),
    at=st.lists(st.integers(0, 5000), max_size=12),
    max_bytes=st.sampled_from([40, 250, 4096]),
)
def test_any_cut_of_any_bytes_gives_the_same_records(
    framing: Framing, pieces: list[bytes], at: list[int], max_bytes: int
) -> None:
    """A read ends wherever the kernel likes: that must never decide what is seen."""
    text = b"".join(pieces)
    whole = run(framing, [text], max_bytes)
    assert run(framing, cut(text, at), max_bytes) == whole
    assert run(framing, [text[i : i + 1] for i in range(len(text))], max_bytes) == whole


@pytest.mark.parametrize("framing", ["jsonl", "lines", "json-stream"])
@given(
    pieces=st.lists(st.sampled_from([HOOK, ROLLOUT, DEBUG_LOG, LOGFMT, STREAM, b"\n", b"half"]), max_size=8),
    stop=st.integers(0, 4000),
)
def test_a_reader_that_starts_again_at_the_boundary_loses_and_repeats_nothing(
    framing: Framing, pieces: list[bytes], stop: int
) -> None:
    """The daemon may be killed between any two reads; the next one goes on from the kept offset."""
    text = b"".join(pieces)
    first = build_framer(framing)
    seen = first.feed(text[: stop % (len(text) + 1)])
    seen += run(framing, [text[first.boundary :]], 4096)[0]
    assert seen == run(framing, [text], 4096)[0]


def test_json_lines_are_objects_and_broken_ones_are_dropped() -> None:
    """A torn line costs itself only; numbers and lists are not records."""
    text = HOOK + b'{"torn": \n[1]\n\n' + ROLLOUT + b'{"unfinished": 1}'
    records, boundary = run("jsonl", [text])
    assert [sorted(record) for record in records] == [
        ["at", "payload"],
        ["ordinal", "payload", "timestamp", "type"],
    ]
    assert boundary == len(text) - len(b'{"unfinished": 1}')


def test_records_know_where_they_start() -> None:
    """Evidence names the file and the byte a person can look at."""
    framer = build_framer("jsonl")
    assert [at for at, _ in framer.frame(HOOK + HOOK)] == [0, len(HOOK)]


def test_broken_text_is_read_with_replacement_marks() -> None:
    """Agents cut strings in the middle of a character; that must not hide the limit beside it."""
    records, _ = run("jsonl", [b'{"a":"\xff","b":"\\ud83d"}\n'])
    assert records == [{"a": "\ufffd", "b": "?"}]


def test_hostile_nesting_is_dropped() -> None:
    """Deep nesting overflows a parser's stack; the line is dropped like any other broken one."""
    assert run("jsonl", [b'{"a":' * 200_000 + b"\n"], 4 << 20) == ([], 1_000_001)


@pytest.mark.parametrize(
    ("framing", "text"),
    [
        ("jsonl", b'{"x":"' + b"y" * 100 + b'"}\n{"ok":1}\n'),
        ("json-stream", b'{"x":"' + b"y" * 100 + b'"}\n{"ok":1}\n'),
        ("sse", b'data: {"x":"' + b"y" * 30 + b'",\ndata: "z":"' + b"y" * 30 + b'"}\n\ndata: {"ok":1}\n\n'),
        ("sse", b'data: {"x":"' + b"y" * 90 + b'"}\n\ndata: {"ok":1}\n\n'),
    ],
)
def test_a_record_over_the_limit_is_dropped_and_the_next_one_read(framing: Framing, text: bytes) -> None:
    """Memory stays bounded whatever an agent writes."""
    assert run(framing, [text], 60) == ([{"ok": 1}], len(text))


def test_an_overlong_log_entry_is_dropped_and_the_next_one_read() -> None:
    """A stack trace without end is bounded too."""
    text = b"level=info a\n" + b"  at x\n" * 20 + b"level=warn b\n"
    assert run("lines", [text], 60) == ([{"text": "level=warn b"}], len(text))


def test_log_entries_carry_their_continuation_lines() -> None:
    """A dump below an entry belongs to it; blank lines between entries are nothing."""
    records, boundary = run("lines", [DEBUG_LOG + b"\n"])
    heads, dump = (
        "[2026-11-20T10:31:02.100Z] [DEBUG] Experiments loaded {",
        "\n  experimentIds: [],\n  flags: []\n}",
    )
    warning = "[WARN] Attempt 1 failed: Your quota will reset after 7h23m19s.. Retrying after 30548425ms..."
    assert records == [{"text": heads + dump}, {"text": f"[2026-11-20T10:31:02.981Z] {warning}"}]
    assert boundary == len(DEBUG_LOG) + 1


def test_a_log_without_any_heads_has_one_entry_a_line() -> None:
    """Plain logs are logs too."""
    assert run("lines", [b"\none\r\ntwo\n"])[0] == [{"text": "one"}, {"text": "two"}]


def test_an_open_log_entry_stays_before_the_boundary_until_flushed() -> None:
    """A daemon killed while an entry is open must read that entry again."""
    framer = build_framer("lines")
    first = b"level=info one\n"
    assert framer.feed(first + b"level=warn two\n") == [{"text": "level=info one"}]
    assert framer.boundary == len(first)
    assert framer.is_waiting
    assert [data for _, data in framer.flush()] == [{"text": "level=warn two"}]
    assert framer.flush() == []
    assert framer.feed(b"level=half a line") == []
    assert not framer.is_waiting


def test_the_telemetry_stream_of_a_real_run_is_read_whole() -> None:
    """Pretty-printed objects one after the other, as the file of a real daily quota has them."""
    with open(os.path.join(SAMPLES, "telemetry.log"), "rb") as file:
        text = file.read()
    records, boundary = run("json-stream", [text], 1 << 20)
    names = [record["attributes"]["event.name"] for record in records]
    assert names == ["gemini_cli.config", "gemini_cli.user_prompt", "gemini_cli.api_error"]
    assert records[2]["attributes"]["status_code"] == 429
    assert boundary == len(text)


def test_a_torn_object_costs_itself_only() -> None:
    """A process killed while writing leaves half an object; the next process starts a new line or not."""
    torn = b'{\n  "a": {\n    "b": "half\n{\n  "c": 1\n}\n'
    assert run("json-stream", [torn])[0] == [{"c": 1}]
    assert run("json-stream", [b'{\n  "a": {"b": 1}\n{\n  "c": {"d": 2}\n}\n'])[0] == [{"c": {"d": 2}}]
    assert run("json-stream", [b'{"a": "x\\\n "b": {"no": 1}}\n{"c": 1}'])[0] == [{"c": 1}]
    assert run("json-stream", [b'{"a": "x\n trailing\n']) == ([], 18)


def test_events_are_their_data_lines_and_nothing_else() -> None:
    """Comments, names, ids and heartbeats are passed over; all three line ends are line ends."""
    records, _ = run("sse", [EVENTS + b"data: nonsense\n\n\n\ndata: {}"])
    assert [record["type"] for record in records] == ["server.connected", "session.status", "session.idle"]
