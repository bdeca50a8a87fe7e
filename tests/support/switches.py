"""A person whose agents change, without a daemon: what it would answer is a file, its notices a FIFO."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator

from tests.support.legs import Wire, hold, raw_python
from tests.support.person import ROOT, Person, at_terminal

BAR = ["relay  ada → bob · session limit · bob is starting", "relay  ada → bob"]
NEXT = ["relay  ada → bob · bob has its packet", "relay  → bob"]
_ECHO = """
say("I am NAME\\r\\nlast words of NAME\\r\\n\\x1b[?2004h\\x1b[?1003h\\x1b[?1h")
while True:
    data = os.read(0, 1 << 16)
    if data == b"q": break
    say("<" + data.hex() + ">")
"""
_CLIENT = """
import json, os, select, sys, time
sys.path.insert(0, sys.argv[1])
from agent_relay.client.attach.held_terminal import HeldTerminal
from agent_relay.client.attach.rest_screen import show_rest
from agent_relay.client.attach.session_loop import SessionLoop
from agent_relay.client.attach.tty import UserTerminal
from agent_relay.domain.errors import WrongUseError
folder = sys.argv[2]
class Daemon:
    notice = os.open(f"{folder}/notices", os.O_RDWR)
    def request(self, op, **_):
        while os.path.exists(f"{folder}/hangs"): time.sleep(0.01)
        with open(f"{folder}/answer") as file: return json.load(file)
    def subscribe(self): pass
    def notices(self, *, limit_s):
        if select.select([self.notice], [], [], limit_s)[0]:
            os.read(self.notice, 1)
            yield {"notice": "session"}
    def take_notices(self): os.read(self.notice, 1)
    def fileno(self): return self.notice
    def close(self): pass
def hold_back():
    with open(f"{folder}/held-back", "a") as file: file.write("!")
    if os.path.exists(f"{folder}/refuses"): raise WrongUseError("there is nothing to hold back")
    return "ada keeps the session"
daemon, terminal = Daemon(), UserTerminal()
terminal.is_single = terminal.is_single and sys.argv[3] == "tty"
def attach(place): return held.attach(place.socket, on_relay_key=lambda line: [])
def rest(place):
    return show_rest(
        place, held=held, reconnect=lambda: daemon, agree_always=None, relay_key=0x1D, on_relay_key=None
    )
def say(line): print(line, end="\\r\\n", flush=True)
status = 130
with HeldTerminal(hold_back, relay_key=0x1D, terminal=terminal) as held:
    loop = SessionLoop(daemon, reconnect=lambda: daemon, attach=attach, say=say, held=held, rest=rest)
    try: status = loop.run(daemon.request("where"))
    except KeyboardInterrupt: pass
print("status", status, flush=True)
"""


class Switches:
    """What the daemon would say, and the person who sits there."""

    def __init__(self, folder: str, way: str) -> None:
        self.folder = folder
        self.argv: list[str] = [sys.executable, "-I", "-S", "-c", _CLIENT, ROOT, folder, way]
        self.person: Person
        os.makedirs(folder, exist_ok=True)
        os.mkfifo(f"{folder}/notices")

    def answer(
        self,
        state: str,
        *,
        leg: str = "",
        bar: list[str] | None = None,
        message: str = "",
        rest: dict[str, object] | None = None,
    ) -> None:
        """From now on the session is so; the client is told that something changed.

        `leg` is a folder beside that of these answers.
        """
        leg = os.path.join(os.path.dirname(self.folder), leg) if leg else ""
        told = {
            "session": "S",
            "state": state,
            "agent": "ada",
            "leg": leg,
            "socket": f"{leg}/sock",
            "bar": bar or [],
            "message": message,
            "folder": "/nowhere",
            "status": 0,
            "rest": rest,
        }
        with open(f"{self.folder}/answer.new", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.rename(f"{self.folder}/answer.new", f"{self.folder}/answer")
        notices = os.open(f"{self.folder}/notices", os.O_RDWR)
        os.write(notices, b"!")
        os.close(notices)

    def hand_on(self) -> None:
        """Bob has the session, and the person sees it."""
        self.answer("busy", leg="two")
        self.person.wait_for("I am bob")

    def refuse(self) -> None:
        """Nothing can be held back from now on."""
        with open(f"{self.folder}/refuses", "w", encoding="utf-8"):
            pass

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Meanwhile the daemon answers nothing."""
        hangs = f"{self.folder}/hangs"
        with open(hangs, "w", encoding="utf-8"):
            pass
        yield
        os.remove(hangs)

    def held_back(self) -> int:
        """How often it was asked to hold the switch back."""
        try:
            return os.path.getsize(f"{self.folder}/held-back")
        except FileNotFoundError:
            return 0

    def watch(self, bar: str, seen: Callable[[], bool], what: str) -> None:
        """Look until something is so; the bottom line is the bar all the time."""

        def look() -> bool:
            assert self.person.emulator.text()[-1] == bar, self.person.text()
            return seen()

        self.person.wait_until(look, what)


@contextlib.contextmanager
def leg(folder: str, name: str, **more: object) -> Iterator[Wire]:
    """A connection to the holder of an agent that says its name and what it reads."""
    with hold(folder, raw_python(_ECHO.replace("NAME", name)), **more) as held, Wire(held.folder) as wire:
        yield wire


@contextlib.contextmanager
def at_switches(folder: str, way: str, leg: str, *, bar: list[str] | None = None) -> Iterator[Switches]:
    """A person on that leg."""
    switches = Switches(folder, way)
    switches.answer("busy" if leg else "handing-off", leg=leg, bar=bar)
    with at_terminal(switches.argv) as person:
        switches.person = person
        yield switches
