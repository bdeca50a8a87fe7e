"""What the real agents once wrote, written again behind attach: the same bytes, the same final screen."""

import glob
import gzip
import os

import pytest

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support.legs import Wire, hold, raw_python
from tests.support.person import Person, at_terminal, client
from tests.support.seats import assert_given_back

RECORDINGS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "recordings")
SIZES = ("120x40", "80x24")
PAINTED = b"\x1b[?2026l"
END = b"\x1b\\\x1b[mTHE END OF IT"
PART = 256 << 10
"""Fewer bytes than may wait for a terminal: one that is behind by a MiB may be painted anew instead."""
PLAYER = """
say("up")
cut, part = int(sys.argv[1]), int(sys.argv[2])
for path in sys.argv[4:]:
    data = memoryview(open(path, "rb").read() + sys.argv[3].encode())
    for begin in range(0, len(data), part):
        os.read(0, 1)
        end = min(begin + part, len(data))
        for at in range(begin, end, cut):
            piece = data[at:min(at + cut, end)]
            while piece:
                piece = piece[os.write(1, piece):]
os.read(0, 1)
"""


def unpack(agent: str, size: str, folder: str) -> list[str]:
    """The agent's recordings of that size, as files a small program can read."""
    paths = []
    for packed in sorted(glob.glob(f"{RECORDINGS}/{agent}/*-{size}.raw.gz")):
        path = f"{folder}/{os.path.basename(packed).removesuffix('.gz')}"
        with gzip.open(packed) as source, open(path, "wb") as file:
            file.write(source.read())
        paths.append(path)
    return paths


def wait_for_end(person: Person, length: int) -> None:
    """As many bytes came as were written; nobody waits for words that may look the same before."""
    person.wait_until(lambda: len(person.received) >= length, f"{length} bytes, not {len(person.received)}")


@pytest.mark.parametrize("way", ["tty", "socket"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
def test_every_recorded_byte_arrives_and_leaves_the_recorded_screen(
    tmp_path: object, agent: str, size: str, way: str
) -> None:
    """Four programs use every corner of a terminal; none may look different because we watch."""
    paths = unpack(agent, size, str(tmp_path))
    assert paths
    cols, rows = map(int, size.split("x"))
    # An odd cut splits characters and sequences; the larger one is what the agents write at once.
    cut = 7 if size == "80x24" else 4096
    argv = [*raw_python(PLAYER), str(cut), str(PART), END.decode(), *paths]
    window = {"rows": rows, "cols": cols}
    with (
        hold(f"{tmp_path}/leg", argv, **window) as held,
        at_terminal(client(held.socket, way=way), **window) as person,
    ):
        person.answers = False
        person.wait_for("up")
        person.wait_until(
            lambda: person.received.endswith(PAINTED) or PAINTED + b"up" in person.received, "the painting"
        )
        direct = Emulator(find_library() or "", cols, rows)
        direct.feed(b"up")
        for path in paths:
            with open(path, "rb") as file:
                data = file.read() + END
            person.received.clear()
            for end in (*range(PART, len(data), PART), len(data)):
                person.type(b"g")
                wait_for_end(person, end)
            assert person.received == data, path
            direct.feed(data)
            assert person.emulator.text() == direct.text(), path
            assert person.emulator.cursor() == direct.cursor(), path
            assert person.emulator.modes() == direct.modes(), path
            with Wire(held.folder) as wire:
                assert [row.text for row in wire.screen().rows] == direct.text(), path
        person.type(b"g")
        assert person.wait_for_end() == 0
        assert_given_back(person)
