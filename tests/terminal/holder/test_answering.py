"""Several terminals and one question: the agent reads one answer, and every key of everybody."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.support.below_bar import heard, wait_to_hear
from tests.support.by_hand import Seat
from tests.support.legs import Wire, hold, raw_python, wait_until
from tests.support.person import at_terminal, client

pytestmark = pytest.mark.size("every")

ASKING = """
say("up")
while True:
    data = os.read(0, 1 << 16)
    if data == b"c": say("\\x1b[c\\x1b[6n\\x1b]11;?\\x07")
    elif data == b"x": say("\\x1bP+q544e\\x1b\\\\")
    else: say("<" + data.hex() + ">")
"""
COLORS = (b"\x1b]11;rgb:1111/1111/1111\x07", b"\x1b]11;rgb:2222/2222/2222\x07")
ANSWERS = tuple(b"\x1b[?1;%dc\x1b[1;%dR" % (name, name) + COLORS[name - 1] for name in (1, 2))


@contextlib.contextmanager
def two_seats(tmp_path: object) -> Iterator[tuple[Seat, Seat, Wire]]:
    """The second is the active one, as the one attached last; rows tell them apart."""
    with (
        hold(str(tmp_path), raw_python(ASKING)) as held,
        Wire(held.folder) as wire,
        contextlib.closing(Seat(held.folder, 21)) as one,
    ):
        one.wait_for(b"up")
        with contextlib.closing(Seat(held.folder, 22)) as two:
            two.wait_for(b"up")
            yield one, two, wire


def ask_at(asking: Seat, other: Seat, key: bytes = b"c", question: bytes = b"\x1b[6n") -> None:
    """A key at which the agent asks its terminals, both of which have the question."""
    asking.ours.sendall(key)
    for seat in (asking, other):
        seat.wait_for(question)


@pytest.mark.size("test")
def test_of_two_terminals_the_active_one_answers(tmp_path: object) -> None:
    """An agent that reads two answers takes the second for typing, or for the answer to its next question."""
    with two_seats(tmp_path) as (one, two, wire):
        ask_at(two, one)
        one.ours.sendall(ANSWERS[0])
        two.ours.sendall(ANSWERS[1])
        wait_to_hear(wire, ANSWERS[1])
        assert wire.ask("status")["rows"] == 22
        # What one terminal sent arrives in order: its answers were dealt with before its key.
        one.ours.sendall(b"z")
        wait_to_hear(wire, ANSWERS[1] + b"z")
        assert wire.ask("status")["rows"] == 21


def test_a_terminal_typed_on_answers_the_next_question(tmp_path: object) -> None:
    """Who types has the colours, the size and the keyboard the agent is to know."""
    with two_seats(tmp_path) as (one, two, wire):
        ask_at(one, two)
        two.ours.sendall(ANSWERS[1])
        two.ours.sendall(b"\x1b[I")
        wait_to_hear(wire, b"\x1b[I")
        assert wire.ask("status")["rows"] == 21, "a window that only came to the front"
        one.ours.sendall(ANSWERS[0][:9])
        one.ours.sendall(ANSWERS[0][9:])
        wait_to_hear(wire, b"\x1b[I" + ANSWERS[0])


def test_who_was_asked_answers_even_if_another_types_meanwhile(tmp_path: object) -> None:
    """Else nobody would: one is not the active one any more, the other was not when it answered."""
    with two_seats(tmp_path) as (one, two, wire):
        ask_at(two, one)
        one.ours.sendall(ANSWERS[0] + b"k")
        wait_to_hear(wire, b"k")
        two.ours.sendall(ANSWERS[1])
        wait_to_hear(wire, b"k" + ANSWERS[1])
        assert wire.ask("status")["rows"] == 21, "an answer is not typing"


def test_a_question_the_emulator_does_not_know_is_answered_once_too(tmp_path: object) -> None:
    """Terminals know more than the emulator does; theirs is the answer then."""
    with two_seats(tmp_path) as (one, two, wire):
        ask_at(two, one, b"x", b"\x1bP+q544e")
        one.ours.sendall(b"\x1bP1+r544e=6f6e65\x1b\\")
        two.ours.sendall(b"\x1bP1+r544e=74776f\x1b\\")
        wait_to_hear(wire, b"\x1bP1+r544e=74776f\x1b\\")
        one.ours.sendall(b"z")
        wait_to_hear(wire, b"\x1bP1+r544e=74776f\x1b\\z")


@pytest.mark.size("test")
def test_while_the_active_terminal_is_away_the_emulator_answers(tmp_path: object) -> None:
    """Somebody at the relay prompt must not make the agent wait, nor another terminal speak for theirs."""
    with two_seats(tmp_path) as (one, two, wire):
        two.ours.sendall(b"\x1d")
        assert two.wire.event("relay-key")["rest"] == ""
        wire.type(b"c")
        one.wait_for(b"\x1b[6n")
        one.ours.sendall(ANSWERS[0])
        emulators = b"\x1b[?62;22c\x1b[1;3R\x1b]11;rgb:0000/0000/0000\x07"
        wait_to_hear(wire, emulators)
        one.ours.sendall(b"z")
        wait_to_hear(wire, emulators + b"z")


@pytest.mark.parametrize(
    "key", [b"\x1b[1;5R", b"\x1b[97;5u", b"\x1b", b"\x1b]", b"\x1b[<0;3;4M", b"\x1b[200~\x1b[?1;2c\x1b[201~"]
)
def test_every_key_of_the_other_terminal_arrives_and_makes_it_the_active_one(
    tmp_path: object, key: bytes
) -> None:
    """Ctrl-F3 looks like a cursor's place, Alt-] like the beginning of a colour."""
    with two_seats(tmp_path) as (one, _, wire):
        one.ours.sendall(key)
        wait_to_hear(wire, key)
        assert wire.ask("status")["rows"] == 21


def test_two_people_at_real_terminals_give_one_answer(tmp_path: object) -> None:
    """The same, with terminals that answer by themselves, one passed and one by socket."""
    with (
        hold(str(tmp_path), raw_python(ASKING)) as held,
        at_terminal(client(held.socket)) as one,
        at_terminal(client(held.socket, way="socket")) as two,
        Wire(held.folder) as wire,
    ):
        for person in (one, two):
            person.wait_for("up")
        for person, other in ((one, two), (two, one)):
            before = heard(wire)
            person.type(b"c")
            for each in (other, person):
                each.wait_until(lambda each=each: b"\x1b[6n" in each.received, "the question")  # type: ignore[misc]
                each.received.clear()
            wait_until(lambda before=before: len(heard(wire)) > len(before) + 30, "the answer")  # type: ignore[misc]
            other.type(b"!")
            wait_until(lambda: heard(wire).endswith(b"!"), "the other's key")
            assert heard(wire)[len(before) :].count(b"rgb:") == 1
            assert heard(wire)[len(before) :].count(b"\x1b[?62;22c") == 1


QUEUED = """
say("up")
os.read(0, 1)
say("." * 600_000 + "\\x1b[c")
say("done")
while True:
    say("<" + os.read(0, 1 << 16).hex() + ">")
"""
EMULATED = b"\x1b[?62;22c"


@pytest.mark.parametrize("op", ["cover", "detach"])
def test_a_question_no_terminal_was_shown_is_answered_all_the_same(tmp_path: object, op: str) -> None:
    """An agent that starts while its terminal still takes the picture before would wait for ever."""
    with hold(str(tmp_path), raw_python(QUEUED)) as held, Wire(held.folder) as wire:
        seat = Seat(held.folder, 21)
        with contextlib.closing(seat):
            seat.wait_for(b"up")
            seat.ours.sendall(b"g")
            wait_until(lambda: b"done" in wire.output(), "the question to be asked")
            assert heard_last(wire) == b"", "the terminal is to answer"
            assert seat.wire.ask(op)["ok"]
            wait_until(lambda: heard_last(wire) != b"", "an answer")
            assert heard_last(wire) == EMULATED


def test_a_question_that_was_shown_is_answered_once(tmp_path: object) -> None:
    """What waits behind it is dropped later, which is no reason to answer it again."""
    asks_first = QUEUED.replace('"." * 600_000 + "\\x1b[c"', '"\\x1b[c"').replace(
        '"done"', '"." * 600_000 + "done"'
    )
    with hold(str(tmp_path), raw_python(asks_first)) as held, Wire(held.folder) as wire:
        seat = Seat(held.folder, 21)
        with contextlib.closing(seat):
            seat.wait_for(b"up")
            seat.ours.sendall(b"g")
            seat.wait_for(b"\x1b[c")
            wait_until(lambda: b"done" in wire.output(), "the rest to wait")
            assert seat.wire.ask("cover")["ok"]
            seat.ours.sendall(b"\x1b[?1;2c")
            wait_until(lambda: heard_last(wire) != b"", "the terminal's answer")
            assert heard_last(wire) == b"\x1b[?1;2c"


def heard_last(wire: Wire) -> bytes:
    """What the agent read after it was done."""
    parts = [part.split(b">")[0] for part in wire.output().split(b"done")[1].split(b"<")[1:]]
    return b"".join(bytes.fromhex(part.decode()) for part in parts)
