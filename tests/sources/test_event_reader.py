"""An event stream is heard as long as the leg lives, whatever its server does."""

import base64

import pytest

from agent_relay.domain.documents.adapter import Snapshot, SourceSpec
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.values import replace
from agent_relay.sources._event_reader import EventReader
from tests.support.heard import Heard, build_place, in_loop, until
from tests.support.stream_server import CHUNKED, OK, Play, StreamServer, event, say, say_and_wait

SPEC = SourceSpec(
    role="event", framing="sse", path="http://127.0.0.1:{port}/event", user="relay", password="{password}"
)
EACH = {"type": "session.status", "properties": {"sessionID": "$key", "status": "$value"}}
SNAPSHOT = Snapshot(url="http://127.0.0.1:{port}/status", each=EACH)
WITH_SNAPSHOT = replace(SPEC, snapshots=(SNAPSHOT,))
STATUS = b'{"ses_1":{"type":"retry","next":1795174945539},"ses_2":{"type":"busy"}}'


async def hear(
    answers: dict[str, list[Play]], count: int, spec: SourceSpec = SPEC, quiet_s: float = 60
) -> tuple[Heard, StreamServer]:
    """What a reader hears from a server that plays these answers, until it heard enough."""
    server, heard = StreamServer(answers), Heard()
    port = await server.start()
    reader = EventReader(spec, build_place(port=str(port), password="pa:ß"), heard.take, quiet_s=quiet_s)
    await heard.wait(count)
    await reader.close()
    await server.close()
    return heard, server


@in_loop
async def test_events_arrive_with_our_name_and_password_shown() -> None:
    """The agent's server listens on a port anybody on the machine could ask."""
    heard, server = await hear({"/event": [say_and_wait(CHUNKED, event(1), event(2))]}, 2)
    assert heard.numbers() == [1, 2]
    assert [record.where.rpartition("/")[2] for record in heard.records] == ["event", "event"]
    token = base64.b64encode("relay:pa:ß".encode())
    assert b"\r\nAuthorization: Basic " + token + b"\r\n" in server.requests[0]


@in_loop
async def test_a_stream_that_breaks_is_opened_anew() -> None:
    """Refusals, nonsense, torn chunks and hang-ups cost a pause, never the stream."""
    plays = [
        say(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
        say(b"SSH-2.0-OpenSSH\r\n\r\n"),
        say(b""),
        say(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000),
        say(CHUNKED, b"zz\r\n"),
        say(CHUNKED, event(1), b"20\r\ndata: {"),
        say(OK + b'\r\ndata: {"n":2}\n\n'),
        say_and_wait(CHUNKED, *(bytes([byte]) for byte in event(3))),
    ]
    server, heard = StreamServer({"/event": plays}), Heard()
    port = await server.start()
    reader = EventReader(SPEC, build_place(port=str(port), password="p"), heard.take)
    await until(lambda: (reader.nudge(), len(heard.records) == 3)[1])
    assert heard.numbers() == [1, 2, 3]
    await reader.close()
    await server.close()


@pytest.mark.size("test")
@in_loop
async def test_a_silent_server_is_asked_anew_after_a_while() -> None:
    """A connection may be dead without anybody saying so."""
    plays = [say_and_wait(CHUNKED, event(1)), say_and_wait(CHUNKED, event(2))]
    heard, _ = await hear({"/event": plays}, 2, quiet_s=1.0)
    assert heard.numbers()[:2] == [1, 2]


@in_loop
async def test_a_huge_event_is_dropped_and_the_next_one_heard() -> None:
    """Whatever an agent streams, our memory is bounded."""
    huge = b'data: {"x":"' + b"y" * (5 << 20) + b'"}\n\n'
    wire = b"%x\r\n%s\r\n" % (len(huge), huge)
    heard, _ = await hear({"/event": [say_and_wait(CHUNKED, wire, event(7))]}, 1)
    assert heard.numbers() == [7]


@in_loop
async def test_the_snapshot_says_what_was_said_before_we_listened() -> None:
    """After the daemon was restarted, a wait already announced is not announced again."""
    answers = {
        "/event": [say_and_wait(CHUNKED, event(1))],
        "/status": [say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(STATUS) + STATUS)],
    }
    heard, _ = await hear(answers, 3, WITH_SNAPSHOT)
    first = heard.records[0]
    assert first.where.endswith("/status")
    assert first.data == {
        "type": "session.status",
        "properties": {"sessionID": "ses_1", "status": {"type": "retry", "next": 1795174945539}},
    }
    assert heard.records[2].data == {"n": 1}


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 No\r\n\r\n",
        OK + b"\r\nnot json",
        OK + b"\r\n" + b'{"x":"' + b"y" * (5 << 20) + b'"}',
        b"",
    ],
)
@in_loop
async def test_a_server_that_does_not_say_its_state_is_still_listened_to(answer: bytes) -> None:
    """The snapshot is an extra."""
    answers = {"/event": [say_and_wait(CHUNKED, event(1))], "/status": [say(answer)]}
    heard, _ = await hear(answers, 1, WITH_SNAPSHOT)
    assert heard.numbers() == [1]


@in_loop
async def test_a_snapshot_that_a_starting_server_does_not_tell_is_asked_again() -> None:
    """Without its model's window nobody would know how full an agent's context is, as long as it lives."""
    answers = {
        "/event": [say_and_wait(CHUNKED, event(1))],
        "/status": [say(b"HTTP/1.1 503 Starting\r\n\r\n"), say(OK + b"\r\n" + STATUS)],
    }
    heard, _ = await hear(answers, 3, WITH_SNAPSHOT)
    assert heard.records[0].data == {"n": 1}
    assert [record.where.endswith("/status") for record in heard.records] == [False, True, True]


@in_loop
async def test_a_plain_snapshot_is_one_record() -> None:
    """Without a shape for its entries, the answer itself is the record."""
    spec = replace(SPEC, snapshots=(Snapshot(url=SNAPSHOT.url),))
    answers = {"/event": [say_and_wait(CHUNKED)], "/status": [say(OK + b"\r\n" + STATUS)]}
    heard, _ = await hear(answers, 1, spec)
    assert sorted(heard.records[0].data) == ["ses_1", "ses_2"]


@in_loop
async def test_every_snapshot_is_asked_though_another_fails() -> None:
    """A server may not know one of them: an older version of the agent."""
    gone = Snapshot(url="http://127.0.0.1:{port}/gone")
    spec = replace(SPEC, snapshots=(gone, Snapshot(url=SNAPSHOT.url)))
    answers = {
        "/event": [say_and_wait(CHUNKED)],
        "/gone": [say(b"HTTP/1.1 404 No\r\n\r\n")],
        "/status": [say(OK + b"\r\n" + STATUS)],
    }
    heard, _ = await hear(answers, 1, spec)
    assert sorted(heard.records[0].data) == ["ses_1", "ses_2"]


@in_loop
async def test_a_server_that_starts_late_is_found() -> None:
    """The agent needs seconds to start; a nudge ends the pause when its screen moved."""
    server, heard = StreamServer({"/event": [say_and_wait(CHUNKED, event(1))]}), Heard()
    port = await server.start()
    await server.close()
    reader = EventReader(SPEC, build_place(port=str(port)), heard.take)
    assert reader.trouble == ""
    reader.update(build_place(port=str(port), password="p"))
    await until(lambda: reader.trouble)
    await server.start(port)
    reader.nudge()
    await heard.wait(1)
    reader.update(build_place(port=str(port), password="other"))
    await reader.close()
    await server.close()


@in_loop
async def test_a_url_that_leads_elsewhere_is_an_error() -> None:
    """Evidence, and our password, stay on this machine."""
    spec = replace(SPEC, path="http://example.com:{port}/event")
    with pytest.raises(ConfigurationError):
        EventReader(spec, build_place(port="1", password="p"), lambda _: None)


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (b"these are no\x1b[31m headers\r\n\r\n", "the server's answer is not valid HTTP"),
        (OK + b"Content-Length: 100\r\n\r\ncut", "the server closed the stream"),
    ],
)
@in_loop
async def test_what_is_wrong_with_an_answer_is_said_in_our_words(answer: bytes, trouble: str) -> None:
    """Up to 64 KiB of what the server sent would be shown, escape sequences and all."""
    server, heard = StreamServer({"/event": [say(answer)]}), Heard()
    reader = EventReader(SPEC, build_place(port=str(await server.start()), password="p"), heard.take)
    await until(lambda: reader.trouble)
    assert reader.trouble == trouble
    await reader.close()
    await server.close()
