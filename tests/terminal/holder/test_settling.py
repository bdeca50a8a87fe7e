"""How often watchers are told of output: seldom while a person types, whose keys must not wait."""

import time
from pathlib import Path

import pytest

from tests.support.by_hand import Seat
from tests.support.legs import Wire, hold, raw_python

pytestmark = pytest.mark.size("every")

ECHO = "say('up')\nwhile key := os.read(0, 64): os.write(1, key)"
TICKING = "import time\nsay('up')\nwhile True: say('.'); time.sleep(0.01)"
SPAN_S = 3.0


def count_settled(wire: Wire, since_s: float) -> float:
    """Return how many seconds pass between two tidings of settled output, of those that came by now."""
    offset = wire.ask("status")["offset"]
    count = 0
    while (wire.event("settled")["offset"]) != offset:
        count += 1
    return (time.monotonic() - since_s) / (count + 1)


def test_what_a_person_types_is_read_more_seldom(tmp_path: Path) -> None:
    """Each reading of the screen holds up the key that comes in the middle of it."""
    with hold(f"{tmp_path}/typed", raw_python(ECHO)) as held, Wire(held.folder) as wire:
        wire.ask("watch")
        seat = Seat(held.folder, 24)
        seat.wait_for(b"up")
        since_s = time.monotonic()
        while time.monotonic() - since_s < SPAN_S:
            seat.ours.sendall(b"x")
            seat.wait_for(b"x")
            seat.seen = b""
            time.sleep(0.005)
        typed_s = count_settled(wire, since_s)
        seat.close()
    with hold(f"{tmp_path}/ticking", raw_python(TICKING)) as held, Wire(held.folder) as wire:
        since_s = time.monotonic()
        wire.ask("watch")
        told = 0
        while time.monotonic() - since_s < SPAN_S:
            wire.event("settled")
            told += 1
        ticking_s = (time.monotonic() - since_s) / told
    assert typed_s > 1.5 * ticking_s
