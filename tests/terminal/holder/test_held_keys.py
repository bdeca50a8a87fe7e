"""Keys typed below the bar: held, and given to the agent in order, once, when the bar goes."""

import contextlib
import time
from pathlib import Path

import pytest

from tests.support.bar_seat import BarSeat
from tests.support.below_bar import (
    BAR,
    ECHO,
    MARKED,
    PASTE,
    heard,
    hold_keys,
    let_go,
    list_reads,
    seat_below_bar,
    seated,
    show,
    type_at,
    wait_to_hear,
    wait_to_hold,
)
from tests.support.legs import Wire, hold, raw_python, wait_until
from tests.support.person import at_terminal, client
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

ASKING = (
    """
say("up"); os.read(0, 1); say("\\x1b[c")
"""
    + ECHO
)


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param([b"fix it\r"], marks=pytest.mark.size("test")),
        [b"a", b"\r", b"\x03", b"\x7f", b"\t", "ü".encode()],
        [b"\x1b[A", b"\x1bOB", b"\x1b[1;5C", b"\x1bx"],
        [PASTE, b"\r"],
        pytest.param([PASTE[:9], PASTE[9:]], marks=pytest.mark.size("test")),
        [PASTE[:-2], PASTE[-2:] + b"x"],
        [b"x" + PASTE + b"y" + PASTE],
    ],
)
def test_what_is_typed_below_the_bar_reaches_the_agent_when_it_goes(
    tmp_path: object, reads: list[bytes]
) -> None:
    """In order and once: who types on while the agents change loses nothing."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        for data in reads:
            hold_keys(seat, wire, data)
        assert heard(wire) == b""
        let_go(seat, wire)
        wait_to_hear(wire, b"".join(reads))
        type_at(seat, wire, b"z")
        assert wire.ask("status")["held"] == 0


@pytest.mark.size("test")
def test_an_agent_reads_each_key_by_itself(tmp_path: object) -> None:
    """All four agents take text and Enter in one read for a paste: Enter is lost, or what comes after it."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"fix it\rnow\x1b[D\x7f" + PASTE + b"\r")
        let_go(seat, wire)
        # Typed before the rest was given, it comes after it.
        seat.ours.sendall(b"z")
        wait_to_hear(wire, b"fix it\rnow\x1b[D\x7f" + PASTE + b"\rz")
        assert list_reads(wire) == [b"fix it", b"\r", b"now", b"\x1b[D", b"\x7f", PASTE, b"\r", b"z"]
        assert wire.ask("status")["typed"] == 1


DEAF = """
say("ready \\x1b[?2004h")
import time
while not os.path.exists(GO): time.sleep(0.01)
"""


def test_an_agent_that_reads_late_reads_each_key_by_itself(tmp_path: object) -> None:
    """One that is busy reads all that came meanwhile in one piece."""
    code = DEAF.replace("GO", repr(f"{tmp_path}/go")) + ECHO.replace('say("ready ")', "")
    with seat_below_bar(str(tmp_path), code) as (seat, wire):
        hold_keys(seat, wire, b"fix it\rnow\r")
        let_go(seat, wire)
        wait_until(lambda: wire.ask("status")["held"] == 5, "the first piece to be typed")
        time.sleep(0.5)
        with open(f"{tmp_path}/go", "w", encoding="utf-8"):
            pass
        wait_to_hear(wire, b"fix it\rnow\r")
        assert list_reads(wire) == [b"fix it", b"\r", b"now", b"\r"]


def test_a_key_that_was_leaned_on_is_not_typed_for_minutes(tmp_path: object) -> None:
    """After ten seconds the rest is typed at once."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"\x03" * 500 + b"end")
        let_go(seat, wire)
        wait_to_hear(wire, b"\x03" * 500 + b"end")
        assert list_reads(wire)[:5] == [b"\x03"] * 5


@pytest.mark.size("test")
def test_what_was_not_given_yet_waits_for_the_next_agent_where_a_handoff_begins(tmp_path: object) -> None:
    """Half of it is typed when the successor meets its own limit; what was typed since comes behind it."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"\x03" * 5 + b"end")
        let_go(seat, wire)
        wait_to_hear(wire, b"\x03")
        seat.ours.sendall(b"!\x1b")
        wait_until(lambda: wire.ask("status")["held"] == 9, "Escape to be a key where there is no bar")
        show(wire, *BAR)
        seat.wait_for_bar(BAR[0])
        rest = len(b"\x03" * 5 + b"end!\x1b") - len(heard(wire))
        assert wire.ask("status")["held"] == rest
        seat.bar = ""
        wire.type(b"q")
        ended = seat.wire.event("exit")
        assert str(ended["held"]).endswith("\x03end!\x1b")


def test_what_an_agent_that_ends_was_not_given_yet_comes_back(tmp_path: object) -> None:
    """The person is told of it: without a bar, too, nothing is lost in silence."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"q\r\rcents")
        let_go(seat, wire)
        ended = seat.wire.event("exit")
        assert (str(ended["held"]).lstrip("\r"), ended["bar"]) == ("cents", [])


def test_a_sequence_cut_in_two_is_held_as_one_key(tmp_path: object) -> None:
    """Its first byte alone would be the Escape key."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        for data in (b"a\x1b[", b"A", b"b\x1b[1;", b"5C"):
            hold_keys(seat, wire, data)
        let_go(seat, wire)
        wait_to_hear(wire, b"a\x1b[Ab\x1b[1;5C")


@pytest.mark.parametrize("escape", sized([b"\x1b", b"\x1b[27u", b"\x1b[27;1:1u"], [b"\x1b"]))
def test_escape_alone_is_told_and_not_held(tmp_path: object, escape: bytes) -> None:
    """It holds the switch back, which is the daemon's to do."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"ab")
        seat.ours.sendall(escape)
        assert seat.wire.event("hold-back") == {"event": "hold-back"}
        assert wire.ask("status")["held"] == 2
        let_go(seat, wire)
        wait_to_hear(wire, b"ab")
        type_at(seat, wire, escape)


@pytest.mark.size("test")
def test_an_agent_that_wants_no_marks_around_pastes_gets_none(tmp_path: object) -> None:
    """Line ends of a paste would be Enter: they are spaces, up to its end, though the end's mark was cut."""
    with seat_below_bar(str(tmp_path), ECHO) as (seat, wire):
        hold_keys(seat, wire, b"a" + PASTE + b"b\r")
        let_go(seat, wire)
        wait_to_hear(wire, b"aone twob\r")
        show(wire, *BAR)
        seat.wait_for_bar(BAR[0])
        hold_keys(seat, wire, b"\x1b[200~one\x1b[20")
        let_go(seat, wire)
        wait_to_hear(wire, b"aone twob\rone")
        seat.ours.sendall(b"1~\r")
        wait_to_hear(wire, b"aone twob\rone\r")


def test_a_megabyte_is_held_up_to_its_bound_and_the_bell_rings(tmp_path: object) -> None:
    """What is not held is not dropped in silence; what is held is whole."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        seat.type(b"x" * (1 << 20))
        seat.wait_until(lambda: b"\x07" in seat.received, "the bell")
        seat.ours.sendall(b"\x1b")
        assert seat.wire.event("hold-back"), "all of it was read"
        wait_to_hold(wire, 64 << 10)
        let_go(seat, wire)
        wait_to_hear(wire, b"x" * (64 << 10))


def test_a_paste_too_large_is_refused_whole(tmp_path: object) -> None:
    """Half a paste is another text, and without its end it would never end."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        seat.type(b"a\x1b[200~" + b"x" * 70_000 + b"\x1b[201~b" + PASTE)
        seat.wait_until(lambda: b"\x07" in seat.received, "the bell")
        wait_to_hold(wire, 2 + len(PASTE))
        let_go(seat, wire)
        wait_to_hear(wire, b"ab" + PASTE)


@pytest.mark.size("test")
def test_a_question_is_answered_below_the_bar_and_what_was_held_stays_so(tmp_path: object) -> None:
    """Held keys were meant for the task: an Enter among them must not trust a folder."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"task\r")
        show(wire, "asks", holds_keys=False)
        seat.wait_for_bar("asks")
        type_at(seat, wire, b"1\r")
        type_at(seat, wire, b"\x1b")
        show(wire, *BAR)
        seat.wait_for_bar(BAR[0])
        seat.ours.sendall(b"more")
        wait_until(lambda: wire.ask("status")["held"] == 9, "more to be held")
        show(wire, *BAR)
        let_go(seat, wire)
        wait_to_hear(wire, b"1\r\x1btask\rmore")


@pytest.mark.size("test")
def test_a_paste_goes_whole_to_whoever_got_its_beginning(tmp_path: object) -> None:
    """The agent that gives way has the rest of it, too, and the successor no half."""
    with seated(str(tmp_path), MARKED) as (seat, wire):
        type_at(seat, wire, b"\x1b[200~first ")
        show(wire, *BAR)
        seat.wait_for_bar(BAR[0])
        seat.ours.sendall(b"half\x1b[201~")
        wait_to_hear(wire, b"\x1b[200~first half\x1b[201~")
        seat.ours.sendall(b"held\x1b[200~sec")
        wait_until(lambda: wire.ask("status")["held"] == 13, "the next to be held")
        let_go(seat, wire)
        seat.ours.sendall(b"ond\x1b[201~!")
        wait_to_hear(wire, b"\x1b[200~first half\x1b[201~held\x1b[200~second\x1b[201~!")


@pytest.mark.size("test")
def test_what_the_daemon_types_is_never_held(tmp_path: object) -> None:
    """The packet goes in while people's keys wait behind it."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"hello\r")
        assert wire.ask("input", data="packet\r", unless_typed=True)["ok"]
        wait_to_hear(wire, b"packet\r")
        let_go(seat, wire)
        wait_to_hear(wire, b"packet\rhello\r")


@pytest.mark.size("test")
def test_answers_of_the_terminal_are_no_keys(tmp_path: object) -> None:
    """A program that waits for one would wait as long as the bar is there."""
    with seated(str(tmp_path), ASKING, ready="up") as (seat, wire):
        wire.type(b"g")
        seat.wait_until(lambda: b"\x1b[c" in seat.received, "the question")
        show(wire, *BAR)
        seat.ours.sendall(b"k\x1b[?1;2cl")
        wait_to_hear(wire, b"\x1b[?1;2c")
        wait_to_hold(wire, 2)


@pytest.mark.parametrize("pending", sized([b"", b"\x1b[", b"\x1b[200~pas"], [b"\x1b[200~pas"]))
def test_what_the_agent_was_not_given_comes_back_with_its_end(tmp_path: object, pending: bytes) -> None:
    """The client takes it along to the next agent; what it sent and nobody read is part of it."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        seat.bar = ""
        seat.ours.sendall(b"a\x1b[Ab" + pending)
        wait_until(lambda: int(str(wire.ask("status")["held"])) >= 5, "the keys to be held")
        wire.type(b"q")
        ended = seat.wire.event("exit")
        assert (ended["status"], ended["held"], ended["bar"]) == (0, f"a\x1b[Ab{pending.decode()}", BAR)


@pytest.mark.parametrize("op", ["detach", "exit"])
def test_a_terminal_let_go_tells_what_it_holds_and_nothing_else(tmp_path: object, op: str) -> None:
    """Without a bar nothing is held; what stands in the line of the agent is told as well."""
    with seated(str(tmp_path), MARKED) as (seat, wire):
        type_at(seat, wire, b"x")
        if op == "detach":
            assert seat.wire.ask("detach")["detached"] == 1
            assert seat.wire.event("detached") == {
                "event": "detached",
                "held": "",
                "line": "x",
                "bar": [],
            }
        else:
            wire.type(b"q")
            ended = seat.wire.event("exit")
            assert (ended["held"], ended["bar"]) == ("", [])


@pytest.mark.parametrize("shown", [True, False])
def test_what_was_typed_before_it_was_attached_comes_first(tmp_path: object, shown: bool) -> None:  # noqa: FBT001
    """Where the bar is gone already, there is nothing to wait for."""
    more = {"bar": BAR, "holds_keys": True} if shown else {}
    with hold(str(tmp_path), raw_python(MARKED), **more) as held, Wire(held.folder) as wire:
        wire.wait_for_text("ready")
        seat = BarSeat(held.folder, held="before" + PASTE[:9].decode())
        with contextlib.closing(seat):
            seat.ours.sendall(PASTE[9:] + b"then")
            if shown:
                wait_to_hold(wire, 10 + len(PASTE))
                show(wire)
            wait_to_hear(wire, b"before" + PASTE + b"then")


def test_two_terminals_hold_their_own(tmp_path: object) -> None:
    """What two people type is not mixed within a word."""
    with seat_below_bar(str(tmp_path), MARKED, rows=20) as (one, wire):
        two = BarSeat(one.folder, rows=22)
        with contextlib.closing(two):
            for seat, key in ((one, b"a"), (two, b"1"), (one, b"b"), (two, b"2")):
                hold_keys(seat, wire, key)
            one.bar = ""
            show(wire)
            wait_to_hear(wire, b"ab12")


@pytest.mark.parametrize("way", sized(["tty", "socket"], ["tty"]))
def test_the_relay_key_opens_the_prompt_below_the_bar(tmp_path: object, way: str) -> None:
    """It is never held; what is typed to the agent around it is."""
    with (
        hold(str(tmp_path), raw_python(MARKED)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        person.wait_for("ready")
        show(wire, *BAR)
        person.wait_for(BAR[0])
        person.type(b"ab\x1d")
        person.wait_for("/use AGENT")
        person.type(b"/quiet\rcd")
        person.wait_for(BAR[0])
        wait_to_hold(wire, 4)
        person.type(b"\x1d")
        person.wait_for("/use AGENT")
        person.type(b"\x1d")
        wait_to_hold(wire, 5)
        show(wire)
        wait_to_hear(wire, b"abcd\x1d")


def test_an_agent_that_reads_nothing_does_not_hold_up_what_is_typed_for_ever(tmp_path: Path) -> None:
    """What is typed later waits behind it, and so would the Ctrl-C that is to end such an agent."""
    code = f"import time\nsay('ready ')\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.05)\n{ECHO}"
    with seat_below_bar(f"{tmp_path}/leg", code) as (seat, wire):
        hold_keys(seat, wire, b"a\rb\rc\rd\r")
        let_go(seat, wire)
        wait_until(lambda: wire.ask("status")["held"] == 0, "all of it to be typed", limit_s=30)
        (tmp_path / "go").touch()
        wait_to_hear(wire, b"a\rb\rc\rd\r")
