"""A terminal below whose bar keys are held, and what the agent has been given of them."""

import contextlib

from tests.support.bar_seat import BarSeat
from tests.support.legs import Wire, hold, raw_python, wait_until

BAR = ["relay  ada → bob"]
ECHO = """
say("ready ")
while True:
    data = os.read(0, 1 << 16)
    if data == b"q": break
    say("<" + data.hex() + ">")
"""
MARKED = "say('\\x1b[?2004h')" + ECHO
PASTE = b"\x1b[200~one\rtwo\x1b[201~"


def list_reads(wire: Wire) -> list[bytes]:
    """What the agent has read so far, read by read."""
    parts = [part for part in wire.output().split(b"<")[1:] if b">" in part]
    return [bytes.fromhex(part.split(b">")[0].decode()) for part in parts]


def heard(wire: Wire) -> bytes:
    """What the agent has read so far."""
    return b"".join(list_reads(wire))


def wait_to_hear(wire: Wire, expected: bytes) -> None:
    """The agent has read exactly this."""
    wait_until(lambda: len(heard(wire)) >= len(expected), f"{expected[:60]!r} ({len(expected)} bytes)")
    assert heard(wire) == expected


def show(wire: Wire, *texts: str, holds_keys: bool = True) -> None:
    """The bar says this; nothing takes it away."""
    assert wire.ask("bar", texts=list(texts), holds_keys=holds_keys)["ok"]


def wait_to_hold(wire: Wire, size: int) -> None:
    """So many bytes are held, and none of them counts as waiting in the agent's line."""
    wait_until(lambda: wire.ask("status")["held"] == size, f"{size} bytes to be held")
    assert wire.ask("status")["typed"] == 0


def hold_keys(seat: BarSeat, wire: Wire, data: bytes) -> None:
    """Type it: all of it is held, beside what was."""
    before = wire.ask("status")["held"]
    assert isinstance(before, int)
    seat.ours.sendall(data)
    wait_to_hold(wire, before + len(data))


def type_at(seat: BarSeat, wire: Wire, data: bytes) -> None:
    """Type it: it comes behind what the agent has read, and nothing else does."""
    before = heard(wire)
    seat.ours.sendall(data)
    wait_to_hear(wire, before + data)


def let_go(seat: BarSeat, wire: Wire) -> None:
    """The bar goes."""
    seat.bar = ""
    show(wire)


@contextlib.contextmanager
def seated(folder: str, code: str, *, ready: str = "ready", **more: object):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """A leg of that program, which is `ready`; a terminal on it, and a connection that watches."""
    with hold(folder, raw_python(code)) as held, Wire(held.folder) as wire:
        wire.wait_for_text(ready)
        seat = BarSeat(held.folder, **more)  # type: ignore[arg-type]
        with contextlib.closing(seat):
            yield seat, wire


@contextlib.contextmanager
def seat_below_bar(folder: str, code: str, **more: object):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """The same with the bar."""
    with seated(folder, code, **more) as (seat, wire):
        show(wire, *BAR)
        seat.wait_for_bar(BAR[0])
        yield seat, wire
