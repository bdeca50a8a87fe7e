"""Answers are read as HTTP says, at any cut, and hostile ones end in an error and not in memory."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_relay.domain.errors import ConfigurationError
from agent_relay.sources._event_reader import StreamError, open_response, parse_url
from tests.support.stream_server import CHUNKED, OK, StreamServer, say


def test_only_plain_http_on_this_machine_is_asked() -> None:
    """Evidence never comes from the network, and our password never goes there."""
    place = parse_url("http://127.0.0.1:4096/session/status?x=1")
    assert (place.host, place.port, place.target) == ("127.0.0.1", 4096, "/session/status?x=1")
    assert parse_url("http://localhost:1").target == "/"
    assert parse_url("http://[::1]:2/e").host == "::1"
    for url in (
        "https://127.0.0.1:1/",
        "http://127.0.0.1/",
        "http://example.com:80/",
        "http://127.0.0.1.example.com:80/",
        "http://127.0.0.1:x/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:1/a b",
        "http://127.0.0.1:1/\r\nX: y",
        "http://[::1/",
        "",
    ):
        with pytest.raises(ConfigurationError):
            parse_url(url)


async def _fetch(*wire: bytes) -> bytes:
    """The body of the answer that a server sends in these pieces; it hangs up after the last one."""
    server = StreamServer({"/a%C3%A9": [say(*wire)]})
    port = await server.start()
    body = b""
    try:
        answer = await open_response(f"http://127.0.0.1:{port}/a\u00e9", user="", password="", wait_s=5)
        try:
            while part := await answer.read(5):
                body += part
        finally:
            await answer.close()
    finally:
        await server.close()
    return body


@settings(max_examples=50, deadline=None)
@given(
    parts=st.lists(st.sampled_from([b"one\n", b"\r\n", b"0\r\n\r\n", b"x" * 40, b"\0"]), max_size=4),
    cuts=st.sets(st.integers(1, 240), max_size=12),
)
@example(parts=[b"one\n", b"\r\n", b"x" * 40], cuts=set(range(1, 240)))
def test_chunks_come_out_the_same_however_they_are_cut(parts: list[bytes], cuts: set[int]) -> None:
    """Servers and the kernel cut where they like, inside sizes and line ends too."""
    wire = CHUNKED + b"".join(b"%X;name=x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    places = [0, *sorted(cuts), len(wire)]
    pieces = [wire[start:end] for start, end in pairwise(places) if wire[start:end]]
    assert asyncio.run(_fetch(*pieces)) == b"".join(parts)


def test_a_body_of_known_length_ends_there_and_one_of_none_with_the_connection() -> None:
    """Both are ordinary answers to a plain request."""
    assert asyncio.run(_fetch(OK + b"Content-Length: 5\r\n\r\nabc", b"defg")) == b"abcde"
    assert asyncio.run(_fetch(OK + b"Content-Length: 0\r\n\r\n")) == b""
    assert asyncio.run(_fetch(OK + b"\r\nabc", b"defg")) == b"abcdefg"


@pytest.mark.parametrize(
    "wire",
    [
        *(
            CHUNKED + size
            for size in (b"\r\n", b"xyz\r\n", b"-1\r\n", b"1" * 40 + b"\r\n", b"\xb2\r\n", b"1_0\r\n")
        ),
        CHUNKED + b"1" * 100_000,
        OK + b"Content-Length: ten\r\n\r\n",
        OK + b"X: " + b"x" * 100_000,
        b"no HTTP\r\n\r\n",
        b"",
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=range(12),
)
def test_an_answer_that_is_none_is_an_error(wire: bytes) -> None:
    """The stream cannot be trusted after that: it is opened anew. No memory is filled with it."""
    with pytest.raises(StreamError):
        asyncio.run(_fetch(wire))
