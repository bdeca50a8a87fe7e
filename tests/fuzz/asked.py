"""What comes on a holder's socket: frames torn, oversize, unknown and wrong, with descriptors and without."""

import contextlib
import os
import random
import select
import shutil
import signal
import socket
import struct
import tempfile
import tty

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder._event_loop import NOTES_FILE
from agent_relay.terminal.holder._holder import Holder
from agent_relay.terminal.holder._operations import answer
from agent_relay.terminal.holder._output import Output
from agent_relay.terminal.holder.wire import HolderSpec
from tests.fuzz.inputs import Step, make_stream
from tests.fuzz.messages import make_body
from tests.support.legs import Wire

_OPS: dict[str, dict[str, object]] = {
    "hello": {},
    "status": {},
    "screen": {"peek": True},
    "tail": {"offset": 0, "limit": 4096},
    "input": {"data": "x\r", "unless_typed": True, "goes_on": True, "note": "n"},
    "resize": {"rows": 24, "cols": 80, "width_px": 0, "height_px": 0},
    "signal": {"signal": "SIGCONT"},
    "watch": {},
    "attach": {
        "rows": 24,
        "cols": 80,
        "width_px": 0,
        "height_px": 0,
        "relay_key": 29,
        "modes": [0] * 6 + [[0] * 32],
        "held": "x\x1b[200~y",
        "keep": True,
    },
    "pause": {},
    "cover": {},
    "resume": {"relay_key": True, "typed": "abc"},
    "detach": {},
    "say": {"text": "t"},
    "bar": {"texts": ["a → b · why", "a → b"], "holds_keys": True},
    "asking": {"texts": ["b asks", "asks"]},
    "luggage": {},
    "collect": {},
}
_CONNECTIONS = 3
_SPARE_FDS = 12
"""How many descriptors more than at its beginning a holder may have open between two inputs."""


class Asked:
    """Whatever was sent, the holder answers the next one, made no mistake, and keeps nothing open."""

    name = "asked"

    def __init__(self) -> None:
        self._pid = 0
        self._folder = ""
        self._fds = 0

    def make(self, rng: random.Random) -> list[Step]:
        """Up to three connections, two of which speak at once; one may have attached a terminal."""
        steps: list[Step] = [["begin"]]
        for _ in range(rng.randrange(1, 12)):
            number, luck = rng.randrange(_CONNECTIONS), rng.random()
            if luck < 0.7:
                frame = self._make_frame(rng)
                at = rng.randrange(len(frame) + 1) if rng.random() < 0.3 else len(frame)
                steps.append(["send", number, frame[:at].decode("latin-1"), rng.choice((0, 0, 1, 1, 2, 5))])
                if at < len(frame) and rng.random() < 0.7:
                    steps.append(["send", number, frame[at:].decode("latin-1"), 0])
            elif luck < 0.8:
                steps.append(["type", make_stream(rng, most=10)])
            else:
                steps.append([rng.choice(("close", "shut", "read")), number])
        return steps

    def _make_frame(self, rng: random.Random) -> bytes:
        body = make_body(rng, _OPS)
        length = len(body)
        if rng.random() < 0.05:
            length = rng.choice((0, 1, length + 1, 4 << 20, (4 << 20) + 1, 0xFFFFFFFF))
        return length.to_bytes(4, "big") + body

    def run(self, steps: list[Step]) -> None:
        """The input, sent; the holder is asked how it is."""
        if not self._pid:
            self._begin()
        connections: dict[int, Wire] = {}
        master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        try:
            for step in steps[1:]:
                with contextlib.suppress(OSError):
                    self._do(connections, master, slave, step)
        finally:
            for wire in connections.values():
                wire.sock.close()
            # Once this is answered the holder has seen them go; only then is the terminal gone, too.
            with contextlib.suppress(OSError, EOFError), Wire(self._folder) as wire:
                wire.sock.settimeout(8)
                wire.ask("hello")
            os.close(master)
            os.close(slave)
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _do(self, connections: dict[int, Wire], master: int, slave: int, step: Step) -> None:
        if step[0] == "type":
            os.write(master, str(step[1]).encode("latin-1")[:4096])
            with contextlib.suppress(BlockingIOError):
                os.read(master, 1 << 16)
            return
        number = int(str(step[1]))
        wire = connections.get(number)
        if wire is None:
            wire = connections[number] = Wire(self._folder)
            wire.sock.settimeout(2)
        if step[0] == "send":
            fds = (slave,) * int(str(step[3]))
            rights = (
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
            )
            data = str(step[2]).encode("latin-1")
            wire.sock.sendall(data[wire.sock.sendmsg([data], rights) :] if data else b"")
        elif step[0] == "read":
            if select.select([wire.sock], [], [], 0.001)[0]:
                wire.sock.recv(1 << 16)
        elif step[0] == "shut":
            wire.sock.shutdown(socket.SHUT_WR)
        else:
            connections.pop(number).sock.close()

    def _begin(self) -> None:
        """A holder forked from here: it starts within a millisecond, and is the real one otherwise."""
        self._folder = tempfile.mkdtemp(prefix="fuzz-leg-")
        read, write = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            status = 70
            try:
                os.close(read)
                os.setsid()
                signal.alarm(0)
                null = os.open(os.devnull, os.O_RDWR)
                for fd in (0, 1, 2):
                    os.dup2(null, fd)
                for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTTOU, signal.SIGTTIN):
                    signal.signal(number, signal.SIG_IGN)
                spec = HolderSpec(
                    argv=["/bin/sh", "-c", "stty raw -echo; exec cat"],
                    env={"PATH": os.defpath},
                    cwd="/",
                    leg_folder=self._folder,
                    rows=24,
                    cols=80,
                    lock_fd=-1,
                    luggage="{}",
                )
                leg = Holder(spec)
                leg.serve(Output(Emulator(find_library() or "", 80, 24), leg.faults), answer)
                os.write(write, b"!")
                leg.loop.run()
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        assert os.read(read, 1) == b"!", "the holder did not start"
        os.close(read)
        self._fds = len(os.listdir(f"/proc/{self._pid}/fd"))

    def _check(self) -> None:
        with Wire(self._folder) as wire:
            wire.sock.settimeout(8)
            status = wire.ask("status")
            assert status["faults"] == 0, self._read_notes()
            if status["exit"] is not None:
                # One whose program was ended is exchanged, and asked for that first.
                assert wire.ask("collect")["ok"]
                self.close()
                return
            assert status["emulator"] is True
        count = len(os.listdir(f"/proc/{self._pid}/fd"))
        assert count <= self._fds + _SPARE_FDS, f"{count} descriptors are open"

    def _read_notes(self) -> str:
        with open(f"{self._folder}/{NOTES_FILE}", encoding="utf-8") as file:
            return file.read()

    def close(self) -> None:
        """The holder and its program are gone."""
        if self._pid:
            with contextlib.suppress(OSError, EOFError), Wire(self._folder) as wire:
                wire.sock.settimeout(2)
                wire.ask("signal", signal="SIGKILL")
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._pid = 0
