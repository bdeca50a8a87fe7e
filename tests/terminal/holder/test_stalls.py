"""A terminal that stalls for a moment and reads on: it gets everything, and waits only for the agent.

A measurement: on a machine with other work the moments are longer than the holder's patience.
"""

import statistics
import time

import pytest

from agent_relay.terminal.holder._terminals import GRACE_S, HIGH_BYTES
from tests.support.by_hand import Seat
from tests.support.legs import Wire, hold, raw_python

pytestmark = pytest.mark.size("bench")

LINES = 1_500_000
FLOOD = f"""
data = b"".join(b"%08d\\r\\n" % number for number in range({LINES}))
say("up"); os.read(0, 1)
at = 0
while at < len(data): at += os.write(1, data[at:at + (1 << 16)])
say("the end"); os.read(0, 1)
"""
STALLS = 7
PATIENCE_S = GRACE_S * 0.8


def wait_for_pause(wire: Wire, received: int) -> int:
    """How much the agent had written when its output was read no more, because nobody takes it."""
    offset, same = -1, 0
    while same < 3:
        before, found = offset, wire.ask("status")["offset"]
        assert isinstance(found, int)
        offset = found
        same = same + 1 if offset == before and offset - received > HIGH_BYTES else 0
    return offset


def read_in_stalls(seat: Seat, wire: Wire) -> tuple[bytes, list[float], float]:
    """All the agent wrote; for each stall how long more took to come; how long the longest stall was.

    Ends early where a stall was too long for the holder's patience.
    """
    seat.ours.sendall(b"g")
    got, waits, longest = bytearray(), [], 0.0
    while not got.endswith(b"the end"):
        if len(waits) < STALLS:
            began = time.monotonic()
            offset = wait_for_pause(wire, len(got)) - len(b"up")
            longest = max(longest, time.monotonic() - began)
            if longest > PATIENCE_S:
                break
            while len(got) < offset:
                got += seat.ours.recv(1 << 18)
            began = time.monotonic()
            got += seat.ours.recv(1 << 18)
            waits.append(time.monotonic() - began)
        else:
            got += seat.ours.recv(1 << 18)
    return bytes(got), waits, longest


def test_a_terminal_that_drains_what_waited_gets_the_rest_at_once_and_whole(tmp_path: object) -> None:
    """Output is read again when the queue is empty, not when a timer says so: every stall would cost that."""
    for attempt in range(5):
        with hold(f"{tmp_path}/{attempt}", raw_python(FLOOD)) as held, Wire(held.folder) as wire:
            wire.wait_for_text("up")
            seat = Seat(held.folder, 24)
            seat.wait_for(b"\x1b[?2026l")
            data, waits, longest = read_in_stalls(seat, wire)
            seat.close()
        # On a machine so busy that a moment took longer, the terminal was given up, as it should be.
        if longest <= PATIENCE_S:
            break
    assert len(waits) == STALLS
    assert data == b"".join(b"%08d\r\n" % number for number in range(LINES)) + b"the end"
    # The timer that looks after paused output rings every half of the grace.
    assert statistics.median(waits) < GRACE_S / 2 / 4
