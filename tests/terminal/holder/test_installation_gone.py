"""A holder that is ready needs nothing of its installation: that may be upgraded, moved or removed."""

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.below_bar import heard
from tests.support.by_hand import Seat
from tests.support.installations import Installation
from tests.support.legs import Held, Wire, hold, raw_python, wait_until
from tests.support.person import at_terminal, client
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

# Asks its terminal on `c`, leaves a shell in a Unix session of its own on `o`, ends on `q`.
AGENT = """
say("up")
while True:
    data = os.read(0, 1 << 16)
    if data == b"c": say("\\x1b[c\\x1b[6n\\x1b]11;?\\x07")
    elif data == b"q": break
    elif data == b"o":
        if os.fork() == 0:
            os.setsid()
            import time
            time.sleep(300)
        say("left")
    else: say("<" + data.hex() + ">")
"""
# Runs the entry of another installation, and notes every module that is looked for.
NOTING = """
import os, sys
entry, log = sys.argv[1:]
def note(event, args):
    if event == "import":
        # A holder closes what it inherited.
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(fd, str(args[0]).encode() + b"\\n")
        os.close(fd)
sys.addaudithook(note)
sys.argv = [entry]
__file__ = entry
with open(entry, encoding="utf-8") as file:
    code = compile(file.read(), entry, "exec")
exec(code)
"""


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """A copy of our package."""
    return Installation(str(tmp_path / "installed"))


@contextlib.contextmanager
def held_by(installation: Installation, folder: Path, **more: object) -> Iterator[tuple[Held, str]]:
    """A leg whose holder runs from `installation`, and the path of the list of what it imported."""
    script, log = f"{folder}/python", f"{folder}/imported"
    entry = f"{installation.folder}/agent_relay/terminal/holder/entry.py"
    words = shlex.join([sys.executable, "-I", "-S", "-X", "utf8", "-c", NOTING, entry, log])
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nexec {words}\n")
    os.chmod(script, 0o700)
    with hold(str(folder / "leg"), raw_python(AGENT), holder=script, **more) as held:
        yield held, log


def exercise(held: Held) -> None:
    """Every operation of a holder, with two terminals, questions, an orphan and the end."""
    with Wire(held.folder) as wire:
        assert wire.ask("hello")["ok"]
        assert wire.ask("watch")["ok"]
        one, two = Seat(held.folder, 21), Seat(held.folder, 22)
        for seat in (one, two):
            seat.wait_for(b"up")
        exercise_terminals(wire, one, two)
        with at_terminal(client(held.socket), rows=25) as person:
            person.wait_for("up")
            person.type(b"\x1d/quiet\r")
            person.resize(26, 90)
            person.type(b"k")
            wait_until(lambda: b"k" in heard(wire), "the key of a passed terminal")
            wait_until(lambda: wire.ask("status")["rows"] == 26, "its size")
            assert wire.ask("say", text="hello")["told"]
            assert wire.ask("detach")["ok"]
            person.wait_for("outcome detached")
        for seat in (one, two):
            seat.close()
        exercise_end(held, wire)


def exercise_terminals(wire: Wire, one: Seat, two: Seat) -> None:
    """A key from the second terminal, answers of both, the relay prompt, a paste, a resize."""
    two.ours.sendall(b"a")
    two.wait_for(b"<61>")
    one.ours.sendall(b"\x1b[A\x1b[I")
    one.wait_for(b"<1b5b41")
    two.ours.sendall(b"c")
    for seat in (one, two):
        seat.wait_for(b"\x1b[6n")
        seat.ours.sendall(b"\x1b[?1;2c\x1b[2;2R\x1b]11;rgb:1111/1111/1111\x07")
    two.wait_for(b"1b5b3f313b3263")
    two.ours.sendall(b"\x1b")
    two.wait_for(b"<1b>")
    two.ours.sendall(b"\x1b[200~pasted\x1b[201~")
    two.wait_for(b"706173746564")
    two.ours.sendall(b"\x1d")
    two.wire.event("relay-key")
    assert two.wire.ask("resume", relay_key=True, typed="x")["ok"]
    assert two.wire.ask("pause")["ok"]
    assert two.wire.ask("resume")["ok"]
    assert two.wire.ask("cover")["ok"]
    assert two.wire.ask("resume")["ok"]
    assert two.wire.ask("resize", rows=30, cols=99)["ok"]
    wire.ask("input", data="z", note="noted", goes_on=True, unless_typed=False)
    for op in ("status", "screen", "peek", "tail", "luggage", "nonsense"):
        wire.ask(op, offset=0, peek=True)
    assert wire.ask("signal", signal="SIGCONT")["reached"] == 1
    assert not wire.ask("signal", signal="SIGNOTHING")["ok"]
    assert not wire.ask("leave")["ok"]


def exercise_end(held: Held, wire: Wire) -> None:
    """The end of an agent that left a shell behind, told, collected and over."""
    wire.type(b"o")
    wait_until(lambda: b"left" in wire.output(), "the orphan")
    wire.type(b"q")
    assert wire.event("exit")["status"] == 0
    assert os.path.exists(f"{held.folder}/exit.json")
    assert wire.ask("collect")["survivors"] == []
    assert wire.ask("leave")["ok"]
    wait_until(lambda: not held.is_locked(), "the holder's end")
    assert not os.path.exists(f"{held.folder}/holder-crash.txt")


def test_a_holder_whose_installation_is_replaced_runs_its_own_code(
    installation: Installation, tmp_path: Path
) -> None:
    """Half of it from one version and half from the next is a program nobody wrote."""
    with held_by(installation, tmp_path) as (held, _):
        for folder, _, names in os.walk(installation.folder):
            for name in names:
                if name.endswith(".py"):
                    Path(folder, name).write_text("raise RuntimeError('another version')\n", "utf-8")
        exercise(held)


@pytest.mark.parametrize("library", sized(["ours", ""], ["ours"], name=lambda one: one or "none"))
def test_a_holder_whose_installation_is_removed_does_all_it_did_and_looks_for_no_module(
    installation: Installation, tmp_path: Path, library: str
) -> None:
    """A second terminal's first key ended holder and agent after an upgrade; Python may be gone, too."""
    more = {} if library else {"library": ""}
    with held_by(installation, tmp_path, **more) as (held, log):
        shutil.rmtree(installation.folder)
        before = Path(log).read_text("utf-8").splitlines()
        exercise(held)
        after = Path(log).read_text("utf-8").splitlines()
    assert "json" in before
    assert after[len(before) :] == []
