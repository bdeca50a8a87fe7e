"""Frames of the holder's socket: four bytes of length, big end first, and one JSON object."""

from agent_relay.domain.protocol.quick_json import parse_json, render_json

# The largest message is a user's environment as luggage; Linux limits it to some 2 MiB.
LONGEST = 4 << 20
_HEAD = 4


class FrameError(ValueError):
    """What came is not a frame; the connection it came on is to be dropped."""


def render_frame(message: dict[str, object]) -> bytes:
    """Render the message as one frame. Raise FrameError if it is longer than a frame may be."""
    body = render_json(message).encode()
    if len(body) > LONGEST:
        raise FrameError(f"a message of {len(body)} bytes does not fit a frame")
    return len(body).to_bytes(_HEAD, "big") + body


class FrameReader:
    """Reads frames from a byte stream cut anywhere; never holds more than one frame and one read."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def is_within(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[dict[str, object]]:
        """Return the messages completed by `data`. Raise FrameError for garbage."""
        self._buffer += data
        messages: list[dict[str, object]] = []
        while len(self._buffer) >= _HEAD:
            length = int.from_bytes(self._buffer[:_HEAD], "big")
            if length > LONGEST:
                raise FrameError(f"a frame of {length} bytes is too long")
            if len(self._buffer) < _HEAD + length:
                break
            messages.append(_parse(bytes(self._buffer[_HEAD : _HEAD + length])))
            del self._buffer[: _HEAD + length]
        return messages


def _parse(body: bytes) -> dict[str, object]:
    try:
        message = parse_json(body)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("a frame is not an object")
    return message
