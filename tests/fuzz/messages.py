"""Messages to a holder or a daemon: right ones, wrong ones, and what is no message at all."""

import json
import random

from tests.fuzz.inputs import TEXTS, make_stream

ODD: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 80, 24, 255, 1000, 65535, 65536, 1 << 31, 1 << 63, -(1 << 64), 10**400,
    0.5, -0.0, 1e308, "", "x", "SIGCONT", "SIGWINCH", "SIGNOTHING", "\x00", "\ud800", "\udcff", "é", "中",
    "\U0001f469", "a\nb", "../..", "/", [], [[]], {}, {"a": {}}, [None], ["x"] * 9,
    [1, 2, 3, 4, 5, 6, [1]], [0] * 7, [10**30] * 6 + [[0] * 32], [0] * 6 + [[10**30]], {"": ""},
    [[[[[[[[]]]]]]]],
)  # fmt: skip
"""Values of every kind that JSON has, and of every size."""
BODIES = (
    b"", b"{", b"}", b"null", b"[]", b'"x"', b"1", b"{}", b'{"op":', b'{"op":NaN}', b'{"op":1e999}',
    b"\xff\xfe", b"\x00" * 40, b'{"op":"hello","op":[]}', b'{"op":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 100_000, b'{"id":' + b"9" * 5000 + b"}", b'{"op":"hello","id":' + b"9" * 4000 + b"}",
    b'{"op":"\\ud800"}', b'{"a":' * 3000, b'{"op":"' + b"x" * 70_000 + b'"}',
)  # fmt: skip


def make_value(rng: random.Random) -> object:
    """Anything a field may hold that it should not."""
    if rng.random() < 0.1:
        return make_stream(rng, most=8)
    if rng.random() < 0.03:
        return rng.choice(TEXTS) * rng.choice((3000, 70_000, 200_000))
    return rng.choice(ODD)


def make_message(rng: random.Random, ops: dict[str, dict[str, object]]) -> dict[str, object]:
    """A request: of `ops`, whose fields have good values, some of which are missing, others odd."""
    op = rng.choice(list(ops))
    message: dict[str, object] = {"op": op, "id": rng.choice((1, "x", None, *ODD))}
    for name, good in ops[op].items():
        luck = rng.random()
        if luck < 0.5:
            message[name] = good
        elif luck < 0.85:
            message[name] = make_value(rng)
    if rng.random() < 0.1:
        message[str(rng.choice(ODD))] = make_value(rng)
    if rng.random() < 0.05:
        message["op"] = make_value(rng)
    return message


def make_body(rng: random.Random, ops: dict[str, dict[str, object]]) -> bytes:
    """A message as bytes; at times garbage."""
    if rng.random() < 0.15:
        return rng.choice(BODIES)
    return json.dumps(make_message(rng, ops)).encode()
