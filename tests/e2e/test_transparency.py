"""A program run directly and under attach, and what real agents once wrote: the same bytes and screen."""

import glob
import gzip
import itertools
import os
import shutil
import termios

import pytest

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support.legs import Wire, hold, raw_python, wait_until
from tests.support.person import Person, at_terminal, client
from tests.support.seats import assert_given_back
from tests.support.sizes import sized

PAINTED = b"\x1b[?2026l"
# What vim and others show of time, load and process numbers is not theirs to repeat.
STEPS = tuple[tuple[bytes, str], ...]
TEXT = "\n".join(f"line {number} äöü 中文 " + "x" * (number % 90) for number in range(200)) + "\nLAST\n"

PROGRAMS: dict[str, tuple[list[str], STEPS]] = {
    "vim": (
        ["vim", "-u", "NONE", "-i", "NONE", "-n", "-N", "text"],
        (
            (b":set nomodeline ruler laststatus=2\r", "text"),
            (b"G", "LAST"),
            (b"Oadded \xc3\xa4\x1b", "added ä"),
            (b":vsplit\r", "added"),
            (b":set number\r", "201"),
        ),
    ),
    "less": (["less", "-S", "text"], ((b"G", "LAST"), (b"?line 12\r", "line 129"), (b"g", "line 0"))),
    "sh": (
        ["sh", "-c", "PS1='$ '; export PS1; exec sh -i"],
        (
            (b"printf '\\033[31mred%s\\n' der\r", "redder"),
            (b"stty size\r", "24 80"),
            (b"tput cup 5 9\r", "$ "),
        ),
    ),
}


def play(person: Person, steps: STEPS) -> None:
    """Type each step and wait for what it shows, and for quiet."""
    for keys, shown in steps:
        person.type(keys, shows=shown)
        settle(person)


def look(person: Person) -> tuple[object, ...]:
    """All there is to see: text, cursor, modes and colors."""
    person.look(0)
    emulator = person.emulator
    colors = [emulator.color(0, y) for y in range(24)]
    return emulator.text(), emulator.cursor(), emulator.modes(), colors


def look_at_layout(person: Person) -> tuple[object, ...]:
    """The row of headings and the modes."""
    person.look(0)
    return next(row for row in person.emulator.text() if "PID" in row), person.emulator.modes()


def wait_for_painting(person: Person) -> None:
    """The screen that stood there before, as whoever attaches is painted it."""
    person.wait_until(
        lambda: person.received.endswith(PAINTED) or PAINTED + b"up" in person.received, "the painting"
    )


def settle(person: Person) -> None:
    """Nothing more comes for a moment."""
    before = -1
    while before != len(person.received):
        before = len(person.received)
        person.look(0.3)


def environment(folder: str) -> dict[str, str]:
    """The same small environment for both runs."""
    return {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "HOME": folder, "LANG": "C.UTF-8"}


WAYS = ("tty", "socket")


@pytest.mark.parametrize(
    ("name", "way"), sized(itertools.product(PROGRAMS, WAYS), [("vim", "tty")], name="-".join)
)
def test_a_program_shows_the_same_directly_and_attached(tmp_path: object, name: str, way: str) -> None:
    """The user must never have to ask whether it is the program or the relay."""
    argv, steps = PROGRAMS[name]
    assert shutil.which(argv[0])
    with open(f"{tmp_path}/text", "w", encoding="utf-8") as file:
        file.write(TEXT)
    env = environment(str(tmp_path))
    run = [
        "sh",
        "-c",
        f'cd "{tmp_path}" && exec env -i "$@"',
        "sh",
        *(f"{k}={v}" for k, v in env.items()),
        *argv,
    ]
    with at_terminal(run) as direct:
        settle(direct)
        play(direct, steps)
        with (
            hold(f"{tmp_path}/leg", argv, env=env, cwd=str(tmp_path)) as held,
            at_terminal(client(held.socket, way=way)) as attached,
        ):
            settle(attached)
            play(attached, steps)
            # On a busy machine quiet is no proof that all was painted: who paints last is waited for.
            attached.wait_until(lambda: look(direct) == look(attached), f"what {look(direct)} is")


@pytest.mark.parametrize("program", [["htop"], ["top", "-d", "60"]])
def test_a_live_display_is_laid_out_the_same(tmp_path: object, program: list[str]) -> None:
    """Numbers change by themselves; frames, headings, colors and modes must not."""
    assert shutil.which(program[0])
    # Both write down how they were last used.
    argv = ["env", "-u", "XDG_CONFIG_HOME", f"HOME={tmp_path}", *program]
    with at_terminal(argv) as direct:
        direct.wait_for("PID")
        settle(direct)
        with hold(str(tmp_path), argv) as held, at_terminal(client(held.socket)) as attached:
            attached.wait_for("PID")
            settle(attached)
            attached.wait_until(lambda: look_at_layout(direct) == look_at_layout(attached), "the same layout")


@pytest.mark.parametrize(
    ("chunk", "way"),
    sized(itertools.product(("1", "7", "4096"), WAYS), [("7", "tty"), ("7", "socket")], name="-".join),
)
def test_every_byte_arrives_unchanged_and_in_order(tmp_path: object, chunk: str, way: str) -> None:
    """A relay that parses must still pass on what it does not understand."""
    data = bytes(range(256)) * 8 + "中文😀e\u0301".encode() * 50 + b"\x1b[31\x1b]0;\xff\x1bP\x9b\x80" * 40
    with open(f"{tmp_path}/data", "wb") as file:
        file.write(data)
    code = (
        "import os, sys, tty; tty.setraw(0); os.write(1, b'up'); os.read(0, 1)\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "for at in range(0, len(data), int(sys.argv[2])): os.write(1, data[at:at + int(sys.argv[2])])\n"
        "os.write(1, b'THE END'); os.read(0, 1)"
    )
    argv = ["python3", "-c", code, f"{tmp_path}/data", chunk]
    with hold(f"{tmp_path}/leg", argv) as held, at_terminal(client(held.socket, way=way)) as person:
        person.answers = False
        person.wait_for("up")
        wait_for_painting(person)
        person.received.clear()
        person.type(b"g")
        person.wait_until(lambda: b"THE END" in person.received, "the end")
        assert bytes(person.received) == data + b"THE END"
        fresh = Emulator(find_library() or "", 80, 24)
        fresh.feed(b"up" + data + b"THE END")
        with Wire(held.folder) as wire:
            wait_until(lambda: "THE END" in wire.screen().text(), "the end")
            assert [row.text for row in wire.screen().rows] == fresh.text()


def test_the_line_discipline_the_program_sees_is_an_ordinary_one(tmp_path: object) -> None:
    """Ctrl-C interrupts, Ctrl-Z suspends, Backspace erases: as on any new terminal."""
    with at_terminal(["cat"]) as direct:
        usual = termios.tcgetattr(direct.slave)
    with hold(str(tmp_path), ["stty", "-a"]) as held, Wire(held.folder) as wire:
        wire.wait_for_exit()
        shown = wire.screen().text()
    assert "intr = ^C" in shown
    assert "erase = ^?" in shown
    assert " icanon" in shown
    assert " iutf8" in shown
    assert usual[3] & termios.ICANON


RECORDINGS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "recordings")
SIZES = ("120x40", "80x24")
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


@pytest.mark.parametrize("way", WAYS)
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
        wait_for_painting(person)
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
