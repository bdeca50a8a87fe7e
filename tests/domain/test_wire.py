import pytest

from agent_relay.domain.errors import (
    AtWorkError,
    ExitCode,
    NobodyAvailableError,
    OurBugError,
    RelayError,
    UntrustedDataError,
    WrongUseError,
)
from agent_relay.domain.protocol.wire import (
    build_hello,
    build_refusal,
    parse_line,
    parse_refusal,
    render_line,
)


def test_a_message_is_one_line_whatever_it_holds() -> None:
    """A newline inside a task or a file name must not end the message."""
    message = {"op": "echo", "text": "a\nb\u2028c", "path": "/x\udcff", "id": 7}
    line = render_line(message)
    assert line.count(b"\n") == 1
    assert parse_line(line) == message


def test_a_hello_names_the_protocol_and_the_client() -> None:
    """Other versions must be able to read this first line for ever."""
    assert render_line(build_hello("0.1.0")) == b'{"op":"hello","version":1,"client":"0.1.0"}\n'


@pytest.mark.parametrize(
    "line", [b"\n", b"nonsense\n", b"[1]\n", b"\xff\n", b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}"]
)
def test_garbage_is_one_clear_error(line: bytes) -> None:
    """Anything may arrive on a socket."""
    with pytest.raises(UntrustedDataError, match="a line is not"):
        parse_line(line)


def test_a_line_has_a_bound_on_both_sides() -> None:
    """One MiB, newline included."""
    fits = render_line({"t": "x" * ((1 << 20) - 9)})
    assert len(fits) == 1 << 20
    assert parse_line(fits)["t"] == "x" * ((1 << 20) - 9)
    with pytest.raises(UntrustedDataError, match="longer than the 1048576"):
        render_line({"t": "x" * ((1 << 20) - 8)})
    with pytest.raises(UntrustedDataError, match="longer than 1048576"):
        parse_line(b" " + fits)


def test_what_json_cannot_say_is_refused() -> None:
    """NaN would be read by Python alone."""
    with pytest.raises(UntrustedDataError):
        render_line({"a": float("nan")})
    with pytest.raises(UntrustedDataError):
        render_line({"a": object()})


@pytest.mark.parametrize("kind", [RelayError, WrongUseError, AtWorkError, NobodyAvailableError, OurBugError])
def test_an_error_arrives_as_the_error_it_was(kind: type[RelayError]) -> None:
    """The command's exit code and hint must not depend on which process found out."""
    found = parse_refusal(build_refusal(kind("cannot do it", hint="Try it so.")))
    assert type(found) is kind
    assert (found.sentence, found.hint, found.code) == ("cannot do it", "Try it so.", kind.code)


def test_why_an_error_is_refused_is_believed_of_wrong_use_alone() -> None:
    """A session at work is nothing else; an unknown reason changes nothing."""
    refusal = {"error": "no", "code": 1, "why": "at-work"}
    assert type(parse_refusal(refusal)) is RelayError
    assert type(parse_refusal(refusal | {"code": 2, "why": "odd"})) is WrongUseError


@pytest.mark.parametrize(
    "answer", [{}, {"code": "69"}, {"code": 12345, "error": 3}, {"code": None, "hint": []}]
)
def test_a_refusal_of_another_version_is_still_an_error(answer: dict[str, object]) -> None:
    """An unreadable reason is no reason to crash."""
    found = parse_refusal(answer)
    assert found.code is ExitCode.FAILED
    assert found.sentence == "the daemon refused without a reason"
