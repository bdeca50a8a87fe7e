"""The daemon's protocol: one JSON object a line, its size, its words, and how errors are sent.

Hot commands import this module: it loads nothing but the errors.
"""

from agent_relay.domain.errors import (
    AtWorkError,
    ConfigurationError,
    DaemonUnreachableError,
    NobodyAvailableError,
    OurBugError,
    RelayError,
    UntrustedDataError,
    WrongUseError,
)
from agent_relay.domain.protocol.json_text import parse_json, render_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WIRE_VERSION = 1
LINE_LIMIT_BYTES = 1 << 20
"""Longest line with its newline, in bytes; longer ones are refused by either side."""

OP_HELLO = "hello"
OP_SUBSCRIBE = "subscribe"

AT_WORK = "at-work"
"""Reason for refusing a turn that may be asked for again; other refusals do not say it in a word."""

NOTICE_SESSION = "session"
NOTICE_STOPPING = "stopping"

_ERRORS: "dict[object, type[RelayError]]" = {
    kind.code: kind
    for kind in (
        WrongUseError,
        NobodyAvailableError,
        UntrustedDataError,
        DaemonUnreachableError,
        ConfigurationError,
        OurBugError,
    )
}


def render_line(message: "Mapping[str, object]") -> bytes:
    """Render the message as one line with its newline.

    File names that are not UTF-8 pass as lone surrogates, escaped. Raises UntrustedDataError if it is
    too long or holds what JSON cannot express.
    """
    try:
        line = render_json(message).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise UntrustedDataError("a message holds something that JSON cannot say") from error
    if len(line) > LINE_LIMIT_BYTES:
        raise UntrustedDataError(
            f"a message of {len(line)} bytes is longer than the {LINE_LIMIT_BYTES} one line may have"
        )
    return line


def parse_line(line: bytes) -> dict[str, object]:
    """Parse the message of one line, newline or not; raise UntrustedDataError, quoting nothing."""
    if len(line) > LINE_LIMIT_BYTES:
        raise UntrustedDataError(f"a line is longer than {LINE_LIMIT_BYTES} bytes")
    try:
        message = parse_json(line)
    except (ValueError, RecursionError):
        raise UntrustedDataError("a line is not JSON") from None
    if not isinstance(message, dict):
        raise UntrustedDataError("a line is not a JSON object")
    return message


def build_hello(client: str) -> dict[str, object]:
    """Build a client's first message; `client` is its version of agent-relay."""
    return {"op": OP_HELLO, "version": WIRE_VERSION, "client": client}


def build_refusal(error: RelayError) -> dict[str, object]:
    """Build the answer that carries an error, without its request's id."""
    why = {"why": AT_WORK} if isinstance(error, AtWorkError) else {}
    return {"ok": False, "error": error.sentence, "hint": error.hint, "code": error.code, **why}


def parse_refusal(answer: "Mapping[str, object]") -> RelayError:
    """Return the error an answer carries, of the class its code names, with sentence and hint kept."""
    sentence, hint, code = answer.get("error"), answer.get("hint"), answer.get("code")
    sentence = sentence if isinstance(sentence, str) and sentence else "the daemon refused without a reason"
    kind = _ERRORS.get(code, RelayError) if isinstance(code, int) else RelayError
    if kind is WrongUseError and answer.get("why") == AT_WORK:
        kind = AtWorkError
    return kind(sentence, hint=hint if isinstance(hint, str) else "")
