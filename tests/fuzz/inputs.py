"""Inputs for fuzzers: streams of bytes made of what terminals and programs say, and of garbage."""

import json
import random
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

Step = list[object]
"""A name and what belongs to it; bytes stand in it as text of one character per byte."""

NUMBERS = (
    "", "0", "1", "2", "5", "27", "47", "93", "97", "200", "201", "255", "256", "999", "1047", "1049",
    "1089", "2004", "2026", "4096", "57358", "57442", "65535", "65536", "99999", "1114111", "1114112",
    "2147483647", "4294967296", "18446744073709551616", "1" * 64, "9" * 300,
)  # fmt: skip
FINALS = "ABCDEFGHIJKLMPRSTXZ@abcdefghijklmnpqrstuxy~`^{|}$"
TEXTS = (
    "a", "hello ", "\r", "\n", "\r\n", "\t", "\b", "\x7f", "\x00", "\x03", "\x15", "\x1d", "\x18", "\x1a",
    "\x0e", "\x0f", "\xc3\xa9", "\xc3", "\xa9", "\xff", "\xfe", "\xe2\x94\x80", "\xe4\xb8\xad",
    "\xf0\x9f\x91\xa9\xe2\x80\x8d", "\xf0\x9f\x92", "\xcc\x81", "\xe2\x80\x8b", "\xef\xbb\xbf",
    "\xed\xa0\x80", "\xc0\x80", "\x80", "\x9b", "\x9d", "\x90",
)  # fmt: skip
STRINGS = (
    "\x1b]", "\x1b]0;", "\x1b]2;title", "\x1b]4;1;rgb:12/34/56", "\x1b]4;300;?", "\x1b]8;;http://x",
    "\x1b]10;?", "\x1b]11;#123456", "\x1b]52;c;", "\x1b]104;", "\x1b]133;A",
    "\x1b]7501;state=working:app=x", "\x1bP", "\x1bP+q544e", "\x1bP$qm",
    '\x1bP0;1;0q"1;1;9;9#0;2;0;0;0~~@@', "\x1b_G", "\x1b_Gi=1,a=q;AAAA", "\x1b^", "\x1bX", "\x1b\\",
    "\x07",
)  # fmt: skip
KEYS = (
    "\x1b[200~", "\x1b[201~", "\x1b[20", "\x1b[A", "\x1bOA", "\x1bO", "\x1b[M!!!", "\x1b[M",
    "\x1b[<0;5;7M", "\x1b[<", "\x1b[93;5u", "\x1b[27;5;93~", "\x1b[93;5:3u", "\x1b[97u", "\x1b[13;2u",
    "\x1b[I", "\x1b[O", "\x1b[5;7R", "\x1b[?1;2c", "\x1b[?2004;1$y", "\x1b\x1b", "\x1b", "\x1b[", "\x1bx",
    "\x1b[1;5R",
)  # fmt: skip
MODES = (
    "1", "3", "5", "6", "7", "9", "25", "47", "66", "69", "1000", "1002", "1003", "1004", "1006", "1016",
    "1047", "1048", "1049", "2004", "2026", "2027", "2031", "9001",
)  # fmt: skip
_LONG_BYTES = 1 << 20


class Target(Protocol):
    """Something fuzzed: makes inputs, and raises where one of them breaks what must hold."""

    name: str

    def make(self, rng: random.Random) -> list[Step]:
        """An input."""
        ...

    def run(self, steps: list[Step]) -> None:
        """The input, done; raises for a finding."""
        ...

    def close(self) -> None:
        """What was opened is closed."""
        ...


def make_rng(name: str, seed: int, number: int) -> random.Random:
    """The source of one input: the same for the same three, on every machine."""
    return random.Random(f"{name}:{seed}:{number}")  # noqa: S311 - nothing is kept secret with it


def make_csi(rng: random.Random) -> str:
    """A control sequence with numbers of any size, at times cut off."""
    numbers = [rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 5, 40)))]
    if rng.random() < 0.02:
        numbers.append("7" * rng.choice((4299, 4300, 4301, 5000, 70000)))
    parts = [rng.choice(";;;:") + number for number in numbers]
    begin = rng.choice(("", "", "", "?", ">", "<", "=", "!"))
    end = rng.choice(("", "", "", " ", "$", "'", '"', "!")) + rng.choice(FINALS)
    whole = "\x1b[" + begin + "".join(parts)[1:] + end
    return whole if rng.random() < 0.9 else whole[: rng.randrange(len(whole))]


def make_mode(rng: random.Random) -> str:
    """A mode set, reset, saved or asked for."""
    return f"\x1b[?{rng.choice(MODES)}{rng.choice(('h', 'l', 'h', 'l', 's', 'r', '$p'))}"


def make_long(rng: random.Random) -> str:
    """Much of the same."""
    size = rng.choice((100, 1000, 4095, 4096, 4097, 65536))
    if rng.random() < 0.02:
        size = _LONG_BYTES
    return rng.choice((*TEXTS, "0", ";", "\x1b", "\x1b[", "\x1b]", "\x1b]7501;", "\x1bP")) * (size // 2)


def make_stream(rng: random.Random, more: tuple[str, ...] = (), *, most: int = 40) -> str:
    """Bytes as text: what is said on terminals in an order nobody planned."""
    kinds: list[Callable[[], str]] = [
        lambda: rng.choice(TEXTS),
        lambda: rng.choice(STRINGS),
        lambda: rng.choice(KEYS),
        lambda: rng.choice(more or TEXTS),
        lambda: make_csi(rng),
        lambda: make_mode(rng),
        lambda: "".join(chr(rng.randrange(256)) for _ in range(rng.randrange(12))),
    ]
    parts = [rng.choice(kinds)() for _ in range(rng.randrange(1, most))]
    if rng.random() < 0.05:
        parts.insert(rng.randrange(len(parts)), make_long(rng))
    return "".join(parts)


def cut(rng: random.Random, stream: str) -> list[str]:
    """The stream in reads, cut anywhere."""
    if rng.random() < 0.2:
        return [stream]
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(1, 8)))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def render(steps: list[Step]) -> str:
    """The input as it is kept: JSON, a step a line."""
    return "[\n" + ",\n".join(json.dumps(step) for step in steps) + "\n]\n"


def parse(text: str) -> list[Step]:
    """The input that was kept."""
    steps: list[Step] = json.loads(text)
    return steps
