"""The palette a program changed goes along with a repaint, entry by entry, and is given back in the end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.emulation.repaint import read_palette

LIBRARY = find_library() or ""


def palette(emulator: Emulator) -> dict[int, bytes]:
    """What the program set."""
    return read_palette(emulator._lib, emulator._handle)  # noqa: SLF001 - what a terminal does not show


def ask(emulator: Emulator, index: int) -> bytes:
    """The terminal's own answer about an entry."""
    emulator.feed(b"\x1b]4;%d;?\x07" % index)
    return emulator.take_replies()


def test_changed_entries_are_repainted_and_no_others() -> None:
    """A person's own sixteen colors must not be replaced by the emulator's idea of them."""
    emulator, fresh = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    emulator.feed(b"\x1b]4;1;rgb:12/34/56\x07\x1b]4;200;#abcdef\x1b\\")
    painted = emulator.repaint()
    assert painted.count(b"\x1b]4;") == 2
    assert b"\x1b]4;1;rgb:12/34/56\x1b\\" in painted
    assert b"]104" not in painted
    fresh.feed(painted)
    assert palette(fresh) == {1: b"\x12\x34\x56", 200: b"\xab\xcd\xef"}
    assert b"\x1b]4;" not in Emulator(LIBRARY, 20, 4).repaint()


def test_an_entry_set_to_the_emulators_default_counts_as_changed() -> None:
    """On the person's terminal that default may be another color."""
    emulator = Emulator(LIBRARY, 20, 4)
    default = ask(emulator, 2)
    emulator.feed(default)
    assert list(palette(emulator)) == [2]
    inverse = bytes(255 - part for part in palette(emulator)[2])
    emulator.feed(b"\x1b]4;2;rgb:%02x/%02x/%02x\x07" % tuple(inverse))
    assert palette(emulator) == {2: inverse}
    assert ask(emulator, 3) == ask(Emulator(LIBRARY, 20, 4), 3), "reading leaves the defaults alone"


def test_an_entry_given_up_meanwhile_is_given_up_by_the_repaint() -> None:
    """A terminal that lagged has it still; one that never had it keeps the person's own."""
    emulator, lagging = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    for each in (emulator, lagging):
        each.feed(b"\x1b]4;1;rgb:12/34/56\x07\x1b]4;7;rgb:00/00/01\x07")
    emulator.see_colors()
    emulator.feed(b"\x1b]104;1\x07")
    lagging.feed(emulator.repaint())
    assert palette(lagging) == {7: b"\0\0\x01"}


def test_a_terminal_that_is_let_go_gets_its_own_palette_back() -> None:
    """The person's shell should not wear the agent's colors."""
    emulator, terminal = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    assert emulator.uncolor() == b""
    for each in (emulator, terminal):
        each.feed(b"\x1b]4;1;rgb:12/34/56\x07\x1b]4;7;rgb:00/00/01\x07")
    assert emulator.uncolor() == b"\x1b]104;1\x1b\\\x1b]104;7\x1b\\"
    terminal.feed(emulator.uncolor())
    assert palette(terminal) == {}


@settings(max_examples=50)
@given(st.dictionaries(st.integers(0, 255), st.binary(min_size=3, max_size=3), max_size=8))
def test_any_palette_is_repainted_exactly(colors: dict[int, bytes]) -> None:
    """Themes set all of it."""
    emulator, fresh = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    for index, color in colors.items():
        emulator.feed(b"\x1b]4;%d;rgb:%02x/%02x/%02x\x07" % (index, *color))
    fresh.feed(emulator.repaint())
    assert palette(emulator) == palette(fresh) == colors
    emulator.close()
    fresh.close()


def test_the_main_screens_cursor_beneath_an_alternate_screen_is_kept() -> None:
    """The one saved cursor that agents rely on for long (mode 1049); others are not kept (decision 10)."""
    emulator, fresh = Emulator(LIBRARY, 20, 4), Emulator(LIBRARY, 20, 4)
    emulator.feed(b"\x1b[3;7H\x1b[31m\x1b[?1049h\x1b[1;1Habove")
    fresh.feed(emulator.repaint())
    for each in (emulator, fresh):
        each.feed(b"\x1b[?1049lx")
    assert fresh.text() == emulator.text() == ["", "", "      x", ""]
    assert fresh.color(6, 2) == emulator.color(6, 2) == "palette:1"
