"""A terminal attached to an agent that says what it reads, for tests."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.support.below_bar import heard
from tests.support.legs import Wire, hold, raw_python
from tests.support.person import Person, at_terminal, client

WAYS = pytest.mark.parametrize("way", ["tty", pytest.param("socket", marks=pytest.mark.size("every"))])
"""Whether the terminal itself is passed to the holder, or each byte goes through the client."""
ECHO = """
say("ready ")
while True:
    data = os.read(0, 1 << 16)
    if data == b"q": say("\\r\\nbye"); sys.exit(3)
    say("<" + data.hex() + ">")
"""
MARKED = "say('\\x1b[?2004h')" + ECHO
DIGEST = """
import hashlib
say("\\x1b[?2004hready")
left, digest = LENGTH, hashlib.sha256()
while left:
    data = os.read(0, min(left, 1 << 16))
    left -= len(data); digest.update(data)
say("\\r\\ngot " + digest.hexdigest())
os.read(0, 1)
"""
Attach = Callable[..., tuple[Person, Wire]]


@contextlib.contextmanager
def attached(
    folder: str,
    code: str = ECHO,
    *,
    way: str = "tty",
    shows: str = "ready",
    prefix: Sequence[str] = (),
    rows: int = 24,
    cols: int = 80,
) -> Iterator[tuple[Person, Wire]]:
    """A person who sees what an agent of that code `shows`, and a connection to its holder.

    `prefix` is a command that runs the client it is followed by.
    """
    with (
        hold(folder, raw_python(code)) as held,
        at_terminal([*prefix, *client(held.socket, way=way)], rows=rows, cols=cols) as person,
        Wire(held.folder) as wire,
    ):
        person.wait_for(shows)
        yield person, wire


def wait_to_hear(person: Person, wire: Wire, expected: bytes) -> None:
    """The agent has read exactly this, its screen being looked at meanwhile."""
    person.wait_until(lambda: len(heard(wire)) >= len(expected), f"{expected!r}")
    assert heard(wire) == expected
