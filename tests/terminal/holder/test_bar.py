"""The bar on the bottom line of every terminal, whatever the agent below it does."""

import contextlib
import os
from collections.abc import Iterator

import pytest

from tests.support.bar_seat import BarSeat
from tests.support.below_bar import let_go, seated, show
from tests.support.legs import Held, Wire, hold, raw_python, wait_until
from tests.support.person import at_terminal, client
from tests.support.sizes import sized

pytestmark = pytest.mark.size("test")

TEXTS = [
    "relay  ada → bob · session limit (resets 21:00) · bob is starting · Esc holds it back",
    "relay  ada → bob · session limit · bob is starting",
    "relay  ada → bob",
]
AT_80, AT_20 = TEXTS[1], TEXTS[2]
PLAYS = {
    "floods": r"""
say("%06d \x1b[3%dmall work and no play\x1b[0m\r\n" % (number, number % 8))
""",
    "scrolls its screen": r"""
say("\x1b[2;5r\x1b[5;1H\nin a region %d" % number)
say("\x1b[r\x1bM\x1b[24;1H\n\x1b[3S")
""",
    "switches screens": r"""
say("\x1b[?1049h\x1b[2J\x1b[24;1Hbelow %d" % number)
say("\x1b[?1049l\x1b[24;1Hprimary %d" % number)
""",
    "clears": r"""
say("\x1b[2J\x1b[H\x1b[24;1Hlowest %d\x1b[3J\x1b[K" % number)
say("\x1bc")
""",
    "fills the last cell": r"""
say("\x1b[24;80H#中文\x1b[?6h\x1b[?7h\x1b[4h\x1b[H\x1b[99;99H%d" % number + "wide 中 " * 40)
""",
    "stops in the middle": r"""
say("\x1b[24;1H\x1b]2;title")
say("%d\x07\x1b[?2026h\x1b[24;1Hx" % number)
""",
}
BEGINS = r"""
import select
say("up"); os.read(0, 1)
number = 0
while not select.select([0], [], [], 0)[0]:
    number += 1
"""
LAST = r"""
os.read(0, 1); say("\x1bc\x1b[2;3Hthe end"); os.read(0, 1)
say("\x1b[2J\x1b[5;1Hafter the bar"); os.read(0, 1)
"""


@contextlib.contextmanager
def seats(held: Held, *sizes: tuple[int, int]) -> Iterator[list[BarSeat]]:
    """Terminals of these sizes."""
    with contextlib.ExitStack() as stack:
        found = []
        for rows, cols in sizes:
            found.append(BarSeat(held.folder, rows=rows, cols=cols))
            stack.callback(found[-1].close)
        yield found


@pytest.mark.size("every")
@pytest.mark.parametrize("play", sized(PLAYS, ["switches screens"]))
def test_whatever_the_agent_writes_the_bar_is_in_every_picture(tmp_path: object, play: str) -> None:
    """A line that is gone while somebody looks was not said; two terminals of other sizes have it as well."""
    code = BEGINS + PLAYS[play].replace("\n", "\n    ") + LAST
    with (
        hold(str(tmp_path), raw_python(code)) as held,
        Wire(held.folder) as wire,
        seats(held, (24, 80), (10, 20)) as (large, small),
    ):
        for seat in (large, small):
            seat.wait_for("up")
        large.resize(24, 80)
        show(wire, *TEXTS)
        large.wait_for_bar(AT_80)
        small.wait_for_bar(AT_20)
        wire.type(b"g")
        for seat in (large, small):
            seat.wait_until(lambda seat=seat: seat.counted > 30, "some pictures")  # type: ignore[misc]
        wire.type(b"g")
        for seat in (large, small):
            seat.wait_for("the end")
        assert large.emulator.text()[1] == "  the end"
        show(wire)
        large.bar = small.bar = ""
        wire.type(b"g")
        for seat in (large, small):
            seat.wait_until(
                lambda seat=seat: seat.text().strip() == "after the bar", "the agent's own screen"
            )  # type: ignore[misc]
        assert large.emulator.text() == wire.screen().text().split("\n")
        assert large.emulator.cursor() == wire.screen().cursor


def test_the_bar_is_there_at_once_and_goes_with_the_agents_exact_screen(tmp_path: object) -> None:
    """What the agent had set is set again: keyboard, mouse, cursor, pen and title."""
    code = r"""
say("\x1b[?1h\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[>7u\x1b[4 q\x1b[?25l\x1b[3;7r\x1b[31mred")
say("\x1b[24;1Hlowest row"); say("\x1b[9;9H!"); os.read(0, 1)
"""
    with seated(str(tmp_path), code, ready="!") as (seat, wire):
        seat.wait_for("!")
        before, modes = seat.emulator.text(), seat.emulator.modes()
        assert before[-1] == "lowest row"
        show(wire, *TEXTS)
        seat.wait_for_bar(AT_80)
        seat.wait_until(
            lambda: seat.emulator.modes()["kitty"] == 0, "plain keys, which any agent understands"
        )
        assert seat.emulator.text()[:-1] == before[:-1]
        let_go(seat, wire)
        seat.wait_until(lambda: seat.emulator.text() == before, "the screen as it was")
        seat.wait_until(lambda: seat.emulator.modes() == modes, "the modes as they were")


def test_an_agent_that_asks_has_its_keyboard_below_the_bar(tmp_path: object) -> None:
    """What is typed reaches it, in the form it asked for."""
    code = r"say('\x1b[?1h\x1b[>1u\x1b[?1000hWhich?'); os.read(0, 1)"
    with seated(str(tmp_path), code, ready="Which?") as (seat, wire):
        seat.wait_for("Which?")
        modes = seat.emulator.modes()
        show(wire, *TEXTS)
        seat.wait_for_bar(AT_80)
        seat.wait_until(lambda: seat.emulator.modes()["1"] == 0, "plain keys")
        show(wire, *TEXTS, holds_keys=False)
        seat.wait_until(lambda: seat.emulator.modes()["kitty"] == 1, "the agent's keyboard")
        assert {**seat.emulator.modes(), "7": 1} == modes


def test_the_row_of_the_cursor_is_never_under_the_bar(tmp_path: object) -> None:
    """A question on the bottom line would be asked to nobody."""
    code = r"say('\x1b[2J\x1b[Htop\x1b[24;1HWhich one? '); os.read(0, 1)"
    with seated(str(tmp_path), code, ready="Which") as (seat, wire):
        seat.wait_for("Which")
        show(wire, *TEXTS, holds_keys=False)
        seat.wait_for_bar(AT_80)
        seat.wait_until(lambda: seat.emulator.text()[22] == "Which one?", "the question above the bar")
        assert seat.emulator.cursor() == (22, 11)


def test_a_resized_terminal_has_the_bar_on_its_new_lowest_row(tmp_path: object) -> None:
    """Windows are resized while one waits; the text is the longest that fits."""
    code = "say('up'); os.read(0, 1)"
    with seated(str(tmp_path), code, ready="up") as (seat, wire):
        seat.wait_for("up")
        show(wire, *TEXTS)
        seat.wait_for_bar(AT_80)
        for rows, cols, text in ((30, 120, TEXTS[0]), (10, 20, AT_20), (5, 10, AT_20[:10]), (1, 30, AT_20)):
            seat.bar = ""
            seat.resize(rows, cols)
            if rows > 1:
                seat.wait_for_bar(text)
                seat.wait_until(lambda: seat.text().count("relay") == 1, "one bar")
        # A terminal of one row is emulated as one of two, here and in the holder.
        seat.wait_until(lambda: text in seat.text(), "the bar of one row")


def test_the_bar_is_there_for_whoever_attaches_later(tmp_path: object) -> None:
    """Also before the agent has drawn anything: a successor's first picture has it."""
    with hold(str(tmp_path), ["cat"], bar=TEXTS, holds_keys=True) as held, Wire(held.folder) as wire:
        status = wire.ask("status")
        assert (status["bar"], status["holds_keys"], status["held"]) == (True, True, 0)
        with seats(held, (24, 80)) as (seat,):
            seat.wait_for_bar(AT_80)
            wire.type(b"drawn\r")
            seat.wait_for("drawn")
            assert seat.wire.ask("detach")["detached"] == 1
        with seats(held, (24, 20)) as (seat,):
            seat.wait_for_bar(AT_20)
            seat.wait_for("drawn")


def test_what_stood_there_stays_until_the_successor_draws_and_is_kept(tmp_path: object) -> None:
    """A blank screen in between says nothing; and the predecessor's last words can be scrolled to."""
    code = "open('ready', 'w'); os.read(0, 1); say('successor'); os.read(0, 1)"
    with hold(str(tmp_path), raw_python(code), bar=TEXTS, holds_keys=True) as held, Wire(held.folder) as wire:
        seat = BarSeat(held.folder, rows=24, cols=80, keep=True)
        with contextlib.closing(seat):
            seat.emulator.feed(b"last words of ada\r\nand more")
            seat.wait_for_bar(AT_80)
            assert "last words of ada" in seat.text()
            assert seat.emulator.take_scrolled() == ()
            wait_until(lambda: os.path.exists(f"{held.folder}/ready"), "the successor to be there")
            wire.type(b"g")
            seat.wait_for("successor")
            assert "last words" not in seat.text()
            assert seat.emulator.take_scrolled()[:2] == ("last words of ada", "and more")


def test_a_bar_of_odd_text_is_one_row_and_no_more(tmp_path: object) -> None:
    """A reason quotes what an agent said."""
    with seated(str(tmp_path), "say('up'); os.read(0, 1)", ready="up", rows=6) as (seat, wire):
        seat.wait_for("up")
        odd = (["a\x1b[2Jb\r\n\x07c"], ["中" * 39 + "🙂", "x"], ["\ud800" * 3], [""])
        for number, texts in enumerate(odd):
            show(wire, *texts)
            show(wire, f"done {number}")
            seat.wait_for_bar(f"done {number}")
            assert seat.emulator.text()[:-1] == ["up", "", "", "", ""], texts
            assert seat.emulator.take_scrolled() == (), texts


def test_a_bar_that_is_no_list_of_texts_is_refused(tmp_path: object) -> None:
    """Nobody is shown half of it."""
    with hold(str(tmp_path), ["cat"]) as held, Wire(held.folder) as wire:
        for texts in (None, "text", [1], ["x" * 2001], ["x"] * 9, {"a": "b"}):
            assert wire.ask("bar", texts=texts, holds_keys=True)["code"] == "bad-request"
        assert wire.ask("status")["bar"] is False
        show(wire, "x" * 2000)
        show(wire, *["x"] * 8)
        assert wire.ask("status")["bar"] is True


def test_without_an_emulator_the_bar_is_painted_between_the_agents_bytes(tmp_path: object) -> None:
    """Where its library is missing there is still a bar, and the agent's own bytes."""
    code = "say('up'); os.read(0, 1); say('more'); os.read(0, 1)"
    with (
        hold(str(tmp_path), raw_python(code), library="") as held,
        Wire(held.folder) as wire,
        seats(held, (24, 80)) as (seat,),
    ):
        seat.wait_for("up")
        show(wire, *TEXTS)
        seat.wait_for_bar(AT_80)
        wire.type(b"g")
        seat.wait_for("upmore")
        let_go(seat, wire)
        seat.wait_until(lambda: "relay" not in seat.text(), "the bar's end")


@pytest.mark.parametrize("way", ["tty", "socket"])
def test_a_person_at_the_relay_prompt_finds_the_bar_again_behind_it(tmp_path: object, way: str) -> None:
    """Prompt and notices are in front; what comes back afterwards has the bar."""
    code = "say('up'); os.read(0, 1); say('\\x1b[2J\\x1b[Hnew'); os.read(0, 1)"
    with (
        hold(str(tmp_path), raw_python(code)) as held,
        at_terminal(client(held.socket, way=way)) as person,
        Wire(held.folder) as wire,
    ):
        person.wait_for("up")
        show(wire, *TEXTS)
        person.wait_for(AT_80)
        person.type(b"\x1d")
        person.wait_for("/use AGENT")
        wire.type(b"g")
        wire.wait_for_text("new")
        assert "new" not in person.text()
        person.type(b"\x1b")
        person.wait_for("new")
        person.wait_for(AT_80)
        wire.ask("say", text="somebody says so")
        person.wait_for("somebody says so")
        person.type(b"k")
        person.wait_for(AT_80)
        person.resize(12, 20)
        person.wait_until(lambda: person.emulator.text()[-1] == AT_20, "the bar in 20 columns")
