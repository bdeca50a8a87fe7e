"""Mistakes of ours, planted everywhere in a holder: each costs what it was made with, and nothing else."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder._event_loop import NOTES_FILE, Faults
from agent_relay.terminal.holder._output import Output
from tests.fuzz.holder import list_corpus
from tests.support.faulty_holder import SECRET
from tests.support.legs import Wire, hold, raw_python, wait_until
from tests.support.person import Person, at_terminal, client
from tests.support.relay_world import CHECKOUT
from tests.support.sizes import sized

pytestmark = pytest.mark.size("test")

ECHO = raw_python("""
say("up")
while True:
    data = os.read(0, 4096)
    if data == b"q": break
    os.write(1, b"<" + data + b">")
""")
PLACES = (
    "emulator.feed", "emulator.take_replies", "emulator.title", "output.take", "output.title",
    "keys.feed", "keys.is_plain", "peers.broadcast", "typing.put", "terminals.send", "terminals.line",
    "terminals.ask", "terminals.over", "child.see_leaving",
)  # fmt: skip
# What is done with one terminal's input: its person attaches again.
COST_THE_TERMINAL = {"keys.is_plain", "terminals.line", "typing.put"}
REQUESTS = {
    "hello": ("child.born", {}),
    "status": ("child.born", {}),
    "screen": ("output.screen", {}),
    "tail": ("output.tail", {}),
    "input": ("typing.put", {"data": "x"}),
    "resize": ("terminals.resize", {"rows": 20, "cols": 60}),
    "signal": ("child.signal", {"signal": "SIGCONT"}),
    "watch": ("terminals.line", {}),
    "pause": ("terminals.pause", {}),
    "cover": ("terminals.cover", {}),
    "resume": ("terminals.resume", {}),
    "detach": ("terminals.remove", {}),
    "say": ("terminals.all", {"text": "hello"}),
    "notify": ("terminals.all", {"title": "shop: bob goes on", "text": "hello"}),
    "luggage": ("spec.luggage", {}),
}


@contextlib.contextmanager
def faulty(folder: str) -> Iterator[str]:
    """The folder of a leg that echoes what is typed, held by a holder whose parts can be made to raise."""
    environ = {**os.environ, "TERM": "xterm-256color"}
    program = [sys.executable, "-m", "tests.support.faulty_holder", folder, *ECHO]
    with subprocess.Popen(
        program, cwd=CHECKOUT, env=environ, stdout=subprocess.PIPE, start_new_session=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        try:
            yield folder
            assert holder.poll() is None, "the holder has ended"
        finally:
            with contextlib.suppress(OSError, EOFError), Wire(folder) as wire:
                wire.ask("signal", signal="SIGKILL")
            holder.kill()


@contextlib.contextmanager
def at_faulty(folder: object) -> Iterator[tuple[Person, Wire]]:
    """A person at the terminal of such a leg, and a connection to its holder that watches."""
    with (
        faulty(str(folder)) as held,
        at_terminal(client(f"{held}/sock")) as person,
        Wire(held) as wire,
    ):
        wait_until(lambda: wire.ask("watch")["attached"] == 1, "the person")
        yield person, wire


def plant(wire: Wire, name: str, times: int = 1) -> None:
    assert wire.ask("plant", name=name, times=times)["ok"]


def echoes(person: Person, word: str) -> None:
    """The person's keys reach the agent, and what it says reaches the person."""
    person.type(word.encode())
    person.wait_until(lambda: word.encode() in bytes(person.received), f"the echo of {word}")


def test_a_mistake_with_a_request_costs_whoever_asked(tmp_path: object) -> None:
    """One operation with a bug must not take the agent, its person and the daemon with it."""
    with (
        faulty(str(tmp_path)) as folder,
        at_terminal(client(f"{folder}/sock")) as person,
        Wire(folder) as watcher,
        at_terminal(["cat"]) as lent,
    ):
        wait_until(lambda: watcher.ask("watch")["attached"] == 1, "the person")
        for op, (name, fields) in REQUESTS.items():
            with Wire(folder) as wire:
                assert wire.ask("attach", (lent.slave,), rows=24, cols=80)["ok"], op
                answer = wire.ask(op, plants=name, **fields)
                assert (answer["ok"], answer["code"]) == (False, "failed"), op
                with pytest.raises((EOFError, ConnectionError)):
                    wire.ask("hello")
            assert watcher.event("fault")["doing"] == f"answering {op}"
            wait_until(lambda: watcher.ask("status")["attached"] == 1, f"who asked to {op} to be let go")
            echoes(person, f"still{op}")


@pytest.mark.size("every")
def test_a_mistake_in_attaching_leaves_no_terminal_behind(tmp_path: object) -> None:
    """Half a terminal would be written to for ever."""
    with faulty(str(tmp_path)) as folder, Wire(folder) as watcher, at_terminal(["cat"]) as lent:
        for place in ("terminals.add", "output.tail"):
            with Wire(folder) as wire:
                plants = {"plants": place} if place == "terminals.add" else {}
                answer = wire.ask("attach", (lent.slave,), rows=24, cols=80, **plants)
                assert answer["ok"] is not bool(plants)
        wait_until(lambda: watcher.ask("status")["attached"] == 0, "both to be let go")
        with at_terminal(client(f"{folder}/sock")) as person:
            echoes(person, "stillhere")


@pytest.mark.size("every")
@pytest.mark.parametrize("op", sized(["collect", "leave"], ["collect"]))
def test_a_mistake_after_the_end_lets_another_one_collect(tmp_path: object, op: str) -> None:
    """How the agent ended is known to the holder alone."""
    place = {"collect": "child.end_session", "leave": "loop.cancel"}[op]
    with faulty(str(tmp_path)) as folder:
        with Wire(folder) as wire:
            wire.wait_for_text("up")
            wire.type(b"q")
            wire.wait_for_exit()
            assert wire.ask(op, plants=place, later=True)["code"] == "failed"
        with Wire(folder) as wire:
            ended = wire.ask("collect")["exit"]
            assert isinstance(ended, dict)
            assert ended["status"] == 0


@pytest.mark.size("every")
@pytest.mark.parametrize("place", sized(PLACES, ["emulator.feed", "keys.feed", "typing.put"]))
def test_a_mistake_with_an_event_costs_that_event(tmp_path: object, place: str) -> None:
    """Output, keys and timers come all the time: one of them that cannot be dealt with is one too few."""
    with at_faulty(tmp_path) as (person, wire):
        echoes(person, "before")
        plant(wire, place)
        while place in str(wire.ask("planted")["left"]):
            # A question of the program's own, so that answers are part of what happens.
            with contextlib.suppress(EOFError, ConnectionError), Wire(str(tmp_path)) as other:
                other.ask("input", data="\x1b[6n")
            with contextlib.suppress(OSError):
                person.type(b"x")
            person.look(0.05)
        attached = wire.ask("status")["attached"]
        if attached:
            echoes(person, "behind")
        wait_until(lambda: wire.ask("screen", peek=True)["ok"], "a screen")
        wire.type(b"\r\nlast stand")
        wire.wait_for_text("last stand")
        assert attached == 1 or place in COST_THE_TERMINAL


@pytest.mark.size("every")
def test_what_a_scanner_falls_over_reaches_the_agent(tmp_path: object) -> None:
    """A key we do not understand is none of our business, but it is the agent's."""
    with at_faulty(tmp_path) as (person, wire):
        plant(wire, "keys.feed")
        person.type(b"\x1b[1089;5ukey")
        wire.wait_for_text("key>")
        assert b"<\x1b[1089;5ukey>" in wire.output()


def test_keys_that_once_ended_an_agent_reach_it(tmp_path: object) -> None:
    """Each was one key or answer of somebody's terminal; the holder and its agent ended with it."""
    typed = [str(steps[1][1]).encode("latin-1") for _, steps in list_corpus("typed")]
    assert b"\x1b[1089;5u" in typed
    with (
        hold(str(tmp_path), ECHO) as held,
        at_terminal(client(held.socket)) as person,
        Wire(held.folder) as wire,
    ):
        wait_until(lambda: wire.ask("status")["attached"] == 1, "the person")
        for number, keys in enumerate(typed):
            person.type(keys)
            echoes(person, f"after{number}")
            wait_until(lambda keys=keys: keys[-40:] in wire.output(), "the keys to reach the agent")
        status = wire.ask("status")
        assert (status["faults"], status["exit"]) == (0, None)


def test_a_lost_screen_is_told_and_shows_again_what_is_drawn(tmp_path: object) -> None:
    """The daemon must not take an empty screen for what the agent shows."""
    with at_faulty(tmp_path) as (person, wire):
        echoes(person, "before")
        plant(wire, "emulator.feed")
        echoes(person, "lost")
        fault = wire.event("fault")
        assert (fault["doing"], fault["screen_lost"]) == ("feeding the screen", True)
        echoes(person, "after")
        assert "before" not in wire.wait_for_text("after").text()


@pytest.mark.size("every")
def test_a_screen_that_breaks_again_and_again_is_done_without(tmp_path: object) -> None:
    """Whoever builds a new one with every read is busy with nothing else."""
    with at_faulty(tmp_path) as (person, wire):
        plant(wire, "emulator.feed", times=1000)
        for number in range(12):
            echoes(person, f"word{number}")
        assert wire.ask("status")["emulator"] is False
        assert wire.ask("screen")["code"] == "no-emulator"
        assert wire.ask("status")["faults"] == 9


def test_the_end_is_told_whatever_goes_wrong_with_it(tmp_path: object) -> None:
    """An end nobody hears of is a session that works for ever."""
    with faulty(str(tmp_path)) as folder, Wire(folder) as wire:
        wire.wait_for_text("up")
        wire.ask("watch")
        for place in ("child.see_end", "output.screen", "terminals.settled", "output.title"):
            plant(wire, place)
        wire.type(b"q")
        assert wire.event("exit")["status"] == 0
        assert os.path.exists(f"{folder}/exit.json")


@pytest.mark.size("every")
def test_notes_hold_no_contents_and_do_not_grow_for_ever(tmp_path: object) -> None:
    """They are asked for in bug reports, and lie in memory."""
    with faulty(str(tmp_path)) as folder, Wire(folder) as watcher:
        for _ in range(60):
            with Wire(folder) as wire:
                wire.ask("hello", plants="child.born")
        assert watcher.ask("status")["faults"] == 60
        with open(f"{folder}/{NOTES_FILE}", encoding="utf-8") as file:
            notes = file.read()
        assert notes.count("doing answering hello\nRuntimeError\n") == 50
        assert SECRET not in notes
        assert "agent_relay/terminal/holder/_operations.py" in notes


@pytest.mark.size("every")
def test_descriptors_nobody_asked_for_are_closed(tmp_path: object) -> None:
    """A peer that passes some with every message would take all the holder may have open."""
    with faulty(str(tmp_path)) as folder, Wire(folder) as wire:
        pid = int(str(wire.ask("hello")["pid"]))
        before = len(os.listdir(f"/proc/{pid}/fd"))
        for _ in range(20):
            assert wire.ask("hello", (1, 1, 1, 1, 2, 2))["ok"]
        # They are closed right after the answer to the message they came with.
        wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) == before, "the descriptors are closed")


@pytest.mark.size("check")
def test_a_renewed_screen_has_the_size_of_the_lost_one() -> None:
    """What is drawn next is drawn for that size."""
    emulator = Emulator(find_library() or "", 80, 24)
    emulator.resize(33, 7)
    assert (emulator.renew().cols, emulator.renew().rows) == (33, 7)
    assert Output(None, Faults("/nowhere")).screen(peek=True) is None
