"""Answers are read as HTTP says, at any cut, and hostile ones end in an error and not in memory."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.errors import ConfigurationError
from agent_relay.sources.live._http_stream import Body, StreamError, parse_url

CHUNKED = {"transfer-encoding": "chunked"}


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


@given(parts=st.lists(st.binary(min_size=1, max_size=40), max_size=5), cuts=st.lists(st.integers(0, 400)))
def test_chunks_come_out_the_same_however_they_are_cut(parts: list[bytes], cuts: list[int]) -> None:
    """Servers and the kernel cut where they like, inside sizes and line ends too."""
    wire = b"".join(b"%X;name=x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    places = [0, *sorted({cut % (len(wire) + 1) for cut in cuts}), len(wire)]
    body = Body(CHUNKED)
    assert b"".join(body.feed(wire[a:b]) for a, b in itertools.pairwise(places)) == b"".join(parts)
    assert body.is_done


def test_a_body_of_known_length_ends_there_and_one_of_none_with_the_connection() -> None:
    """Both are ordinary answers to a plain request."""
    body = Body({"content-length": "5"})
    assert (body.feed(b"abc"), body.is_done) == (b"abc", False)
    assert (body.feed(b"defg"), body.is_done) == (b"de", True)
    assert Body({"content-length": "0"}).is_done
    body = Body({})
    assert (body.feed(b"abc"), body.is_done) == (b"abc", False)


@pytest.mark.parametrize(
    "wire", [b"xyz\r\n", b"-1\r\n", b"\r\n", b"1" * 40 + b"\r\n", b"1" * 2000, b"\xb2\r\n", b"1_0\r\n"]
)
def test_sizes_that_are_none_are_an_error(wire: bytes) -> None:
    """The stream cannot be trusted after that: it is opened anew."""
    with pytest.raises(StreamError):
        Body(CHUNKED).feed(wire)


def test_a_length_that_is_none_is_an_error() -> None:
    """As for chunks."""
    with pytest.raises(StreamError):
        Body({"content-length": "ten"})
