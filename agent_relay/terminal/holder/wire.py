"""Encode what passes between a daemon and a holder: the spec of a leg, and frames of JSON."""

import json

from agent_relay.domain.protocol.json_text import parse_json, render_json

LINGER_S = 8 * 24 * 3600.0
STREAMS = 3


class HolderSpec:
    """One leg to hold. Never changed after it was made.

    `argv` and `env` are the child's; `argv[0]` without a slash is looked up in `env["PATH"]`. Sizes are
    cells, `width_px` and `height_px` pixels of the whole terminal (0 unknown). `library` is the path of the
    emulator's library or empty. `luggage` is kept in memory and returned to any later daemon. `lock_fd` is
    the open descriptor of the leg folder's `lock`, flocked by whoever made it, `tree_fd` that of the lock all
    holders in one working tree share (-1: none), `port_fd` a socket bound to the port that the agent's
    requests go to, so that nobody else can take it (-1: none); all stay open for the holder's life.
    `linger_s` is how long the holder of an ended child waits for `leave`. A child that ends with
    `again_status` (0: none) asks to be started again, and is. With `streams`, the paths of its standard
    input, output and error, the child gets these files and no terminal, so that nothing in it can wait for a
    person's answer. `bar` and `holds_keys` are what its terminals show from the first moment, as in the
    operation `bar`.
    """

    __slots__ = (
        "again_status", "argv", "bar", "cols", "cwd", "env", "height_px", "holds_keys", "leg_folder",
        "library", "linger_s", "lock_fd", "luggage", "port_fd", "rows", "streams", "tree_fd", "width_px",
    )  # fmt: skip

    def __init__(
        self,
        *,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        leg_folder: str,
        rows: int,
        cols: int,
        lock_fd: int,
        library: str = "",
        luggage: str = "",
        width_px: int = 0,
        height_px: int = 0,
        linger_s: float = LINGER_S,
        again_status: int = 0,
        streams: "list[str] | None" = None,
        tree_fd: int = -1,
        port_fd: int = -1,
        bar: "list[str] | None" = None,
        holds_keys: bool = False,
    ) -> None:
        if not argv or rows < 1 or cols < 1:
            raise ValueError("a holder needs a program and a size")
        if streams and len(streams) != STREAMS:
            raise ValueError("a child has three standard streams")
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.leg_folder = leg_folder
        self.rows = rows
        self.cols = cols
        self.lock_fd = lock_fd
        self.library = library
        self.luggage = luggage
        self.width_px = width_px
        self.height_px = height_px
        self.linger_s = linger_s
        self.again_status = again_status
        self.streams = streams or []
        self.tree_fd = tree_fd
        self.port_fd = port_fd
        self.bar = bar or []
        self.holds_keys = holds_keys


_DESCRIPTORS = ("lock_fd", "tree_fd", "port_fd")


def list_descriptors(spec: HolderSpec) -> list[int]:
    """Return the descriptors that the spec names, in the order in which they are sent."""
    return [handle for name in _DESCRIPTORS if (handle := getattr(spec, name)) >= 0]


def render_spec(spec: HolderSpec) -> bytes:
    """Render the spec as JSON. Undecodable bytes of names become the surrogates of `os.fsdecode`."""
    return json.dumps({name: getattr(spec, name) for name in HolderSpec.__slots__}).encode()


def parse_spec(data: bytes, descriptors: list[int]) -> HolderSpec:
    """Parse a spec from JSON, skipping unknown fields, for a process that was sent `descriptors`.

    They are those the spec names, in the order of `list_descriptors`. Raise ValueError, TypeError or
    KeyError if it is not a spec.
    """
    found = json.loads(data)
    known = {name: found[name] for name in HolderSpec.__slots__ if name in found}
    names = [name for name in _DESCRIPTORS if known.get(name, -1) >= 0]
    return HolderSpec(**{**known, **dict(zip(names, descriptors, strict=True))})


# The largest message is a user's environment as luggage; Linux limits it to some 2 MiB.
LONGEST = 4 << 20
_HEAD = 4


class FrameError(ValueError):
    """Error for input that is not a frame; the connection it came on is to be dropped."""


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
        """True if a frame has begun and not ended."""
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
