"""Run one leg in its holder: a PTY, a child, its screen, the attached terminals, what passes between."""

import os
import time

from agent_relay.terminal.holder._event_loop import GONE, IN, OUT, Faults, Loop
from agent_relay.terminal.holder._folder_keeper import FolderKeeper
from agent_relay.terminal.holder._output import Output
from agent_relay.terminal.holder._peers import HolderPeer, Peers
from agent_relay.terminal.holder._terminal import Bar
from agent_relay.terminal.holder._terminals import GRACE_S, READ_BYTES, Terminals
from agent_relay.terminal.holder.child import Child, build_exit, count_unread, open_pty, set_size, store_exit
from agent_relay.terminal.restore import restore

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.terminal.holder.wire import HolderSpec

# Watchers are told of new output at most this often, and once after it stopped.
SETTLED_S = 0.1
# While somebody types, more seldom: a key that meets a reading of the screen is painted that much later.
_TYPED_SETTLED_S = 0.5
_TYPING_S = 0.25
# Processes the child left behind may keep the terminal open for ever; their silence ends the reading.
_SILENCE_S = 0.25
# They may also write for ever; what the child wrote last is read long before.
_LAST_READ_S = 2.0
_FAREWELL_S = 2.0
# How long a holder nobody will need again waits for somebody who collects its end.
_DISMISSED_S = 5.0
# How often a holder that waits to be told to leave looks whether its folder was deleted.
_LOOKS_S = 60.0
# A program that asks to be started again sooner would do so for ever.
_AGAIN_S = 0.5
# Whoever left the agent at least this long before its end is not ended with it.
_LEAVING_S = 0.5


class Holder:
    """Spawns the child at once (raises OSError) and serves it until it has ended and the holder may leave."""

    def __init__(self, spec: "HolderSpec") -> None:
        self.spec = spec
        self.size = (spec.rows, spec.cols, spec.width_px, spec.height_px)
        self.faults = Faults(spec.leg_folder, self._told_fault)
        self.loop = Loop(self.faults)
        self.master, self._slave = open_pty(
            rows=spec.rows, cols=spec.cols, width_px=spec.width_px, height_px=spec.height_px
        )
        self.own_tty = os.fstat(self._slave).st_rdev
        self.umask = -1
        self.child = self._start()
        self.exit: dict[str, object] | None = None
        self.stored = False
        self.noted = ""
        self._linger_s = spec.linger_s
        self._ended = False
        self._read_until = 0.0
        self._paused = False
        self._title = ""
        self._told: tuple[int, bool] = (0, False)

    def serve(
        self, output: Output, handle: "Callable[[Holder, HolderPeer, dict[str, object]], None]"
    ) -> None:
        """Listen in the leg's folder and watch the child; `handle` answers messages. Call `loop.run` next."""
        self.output = output
        self.terminals = Terminals(
            self.loop,
            self.master,
            output,
            self.faults,
            resized=self.resize,
            changed=self._count_terminals,
            eased=self._relieve,
            has_read=self._has_read,
        )
        self.loop.watch(self.master, IN, self._on_master)
        self.typing = self.terminals.typing
        if self.spec.bar:
            self.terminals.set_bar(Bar(self.spec.bar, holds_keys=self.spec.holds_keys))
        self.peers = Peers(
            self.loop,
            self.spec.leg_folder,
            self.faults,
            handle=lambda peer, message: handle(self, peer, message),
            dropped=self._drop_terminal,
        )
        self.loop.watch(self.child.pidfd, IN, self._on_child)
        self._keeper = FolderKeeper(
            self.loop,
            self.spec.leg_folder,
            self.spec.lock_fd,
            listen=self.peers.listen_again,
            may_stay=self._may_stay,
            leave=self._leave_soon,
        )

    def _may_stay(self) -> bool:
        """Return whether anybody may want this holder: what is gone of its folder is made again then.

        After its agent's end nobody does if the leg's folder alone was removed, or if both the runtime folder
        and the one the agent worked in were: no other agent can follow it there. A moved one is another case.
        """
        if not self._ended:
            return True
        has_place = os.path.isdir(self.spec.cwd)
        if os.path.isdir(self.spec.leg_folder):
            return has_place or not self._keeper.was_gone
        return has_place and not os.path.isdir(os.path.dirname(self.spec.leg_folder))

    def _leave_soon(self) -> None:
        """Leave when terminals and watchers were told of the end."""
        self.loop.cancel("linger")
        self.loop.after("linger", _FAREWELL_S, lambda: self._linger(0.0))

    def _start(self) -> Child:
        self._began = time.monotonic()
        ours = os.umask(self.umask) if self.umask >= 0 else -1
        try:
            return Child(self.spec, slave=self._slave)
        finally:
            if ours >= 0:
                os.umask(ours)

    def resize(self, size: tuple[int, int, int, int]) -> None:
        """Set the size of the child's terminal: rows, columns, pixels."""
        if size == self.size or self._ended:
            return
        self.size = size
        rows, cols, width_px, height_px = size
        self.output.resize(rows=rows, cols=cols, width_px=width_px, height_px=height_px)
        set_size(self.master, rows=rows, cols=cols, width_px=width_px, height_px=height_px)
        self.terminals.see_output()

    def nudge(self) -> None:
        """Make the program repaint itself, if there is no emulator to do it."""
        if self.output.emulator is None:
            self._redraw()

    def _redraw(self) -> None:
        """Report a resize there and back to the program, after which most programs draw all they show."""
        rows, cols, width_px, height_px = self.size
        if not self._ended:
            set_size(self.master, rows=rows, cols=max(1, cols - 1), width_px=width_px, height_px=height_px)
            set_size(self.master, rows=rows, cols=cols, width_px=width_px, height_px=height_px)

    def _told_fault(self, doing: str) -> None:
        """Report the error when what raised is over: reporting it in the middle could raise again."""
        self.loop.after("fault", 0.0, lambda: self._tell_fault(doing))

    def _tell_fault(self, doing: str) -> None:
        lost = self.output.take_lost()
        self.peers.broadcast(
            {"event": "fault", "doing": doing, "count": self.faults.count, "screen_lost": lost}
        )
        if lost:
            self._redraw()

    def _has_read(self) -> bool:
        """Return whether the living child has read all that was typed."""
        if self.child.exit is not None or self.typing.size:
            return False
        return count_unread(self._slave) == 0

    def key_age_s(self) -> float | None:
        """Return the seconds since a person last typed; `None` if nobody did."""
        at = self.terminals.key_at
        return None if at is None else round(time.monotonic() - at, 3)

    def _is_typed_on(self) -> bool:
        """Return whether a person typed a moment ago."""
        at = self.terminals.key_at
        return at is not None and time.monotonic() - at < _TYPING_S

    def tell_terminals(self) -> None:
        """Report to watchers how many terminals are attached and whether somebody is typing."""
        self.peers.broadcast(
            {
                "event": "clients",
                "attached": len(self.terminals.all),
                "typed": self.terminals.line.count,
                "key_age_s": self.key_age_s(),
            }
        )

    def _count_terminals(self) -> None:
        told = (len(self.terminals.all), self.terminals.line.count > 0)
        if told != self._told:
            self._told = told
            self.tell_terminals()

    def _drop_terminal(self, peer: HolderPeer) -> None:
        terminal = peer.terminal
        if terminal is not None and terminal in self.terminals.all:
            # It did not say goodbye: its client was killed and cannot give the terminal back itself.
            if os.isatty(terminal.fd):
                restore(terminal.fd, terminal.modes)
            self.terminals.remove(terminal)

    def _on_master(self, ready: int) -> None:
        if ready & OUT:
            self.typing.flush()
        if not ready & (IN | GONE):
            return
        try:
            data = os.read(self.master, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        # First the people, then our own picture of it.
        self.terminals.send(data)
        answers = self.output.take(data)
        self.terminals.see_output()
        self.loop.after("settled", _TYPED_SETTLED_S if self._is_typed_on() else SETTLED_S, self._settle)
        if self.child.exit is not None and time.monotonic() < self._read_until:
            self.loop.cancel("silence")
            self.loop.after("silence", _SILENCE_S, self._silent)
        if answers:
            with self.faults.guard("answering the program"):
                if not self.terminals.ask(answers):
                    self.typing.put(self, answers, in_paste=False)
        if not self._paused and self.terminals.over:
            self._paused = True
            self.typing.read_output(wanted=False)
            self.loop.after("relieve", GRACE_S / 2, self._relieve)

    def _relieve(self) -> None:
        """Read output again as soon as the terminals took enough, or one of them was given up."""
        self.loop.cancel("relieve")
        if not self._paused:
            return
        # Before anything is tried: output that is not read stalls the agent.
        self.loop.after("relieve", GRACE_S / 2, self._relieve)
        if self.terminals.relieve():
            self._paused = False
            self.loop.cancel("relieve")
            self.typing.read_output(wanted=True)

    def _settle(self) -> None:
        scanner, tail = self.output.scanner, self.output.tail
        self._count_terminals()
        self.peers.broadcast(
            {"event": "settled", "offset": tail.total, "agent_state": scanner.state, "typed": self._told[1]}
        )
        if not self._ended:
            self.loop.after("leaving", _LEAVING_S, self._see_leaving)
        title = self.output.title()
        if title != self._title:
            self._title = title
            self.peers.broadcast({"event": "title", "title": title})

    def _see_leaving(self) -> None:
        """Note what has left the current child, which may have been started after the timer was set."""
        if self.child.exit is None:
            self.child.see_leaving()

    def _on_child(self, _ready: int) -> None:
        if self.child.see_end():
            self.loop.forget(self.child.pidfd)
            starts_again = False
            with self.faults.guard("starting the program again"):
                starts_again = self._starts_again()
            if starts_again:
                return
            # While we hold the slave the master never ends; from now on its end is the end of all output.
            os.close(self._slave)
            self._read_until = time.monotonic() + _LAST_READ_S
            self.loop.after("silence", _SILENCE_S, self._silent)

    def _starts_again(self) -> bool:
        """Start the program again if it asked for that, on the terminal as it is; return whether it runs."""
        ended = self.child
        if not self.spec.again_status or ended.exit != (self.spec.again_status, 0):
            return False
        if time.monotonic() - self._began < _AGAIN_S:
            return False
        ended.end_session()
        try:
            self.child = self._start()
        except OSError:
            return False
        ended.reap()
        self.loop.cancel("silence")
        self.loop.watch(self.child.pidfd, IN, self._on_child)
        return True

    def _silent(self) -> None:
        if self._paused:
            self.loop.after("silence", _SILENCE_S, self._silent)
        else:
            self._end()

    def _hang_up(self) -> None:
        self.loop.forget(self.master)
        self.typing.close()
        self._end()

    def _end(self) -> None:
        """Store the end of a child whose output was read to its end, then report it to everybody."""
        if self._ended:
            return
        self._ended = True
        self.loop.cancel("silence")
        total = self.output.tail.total
        self.exit = build_exit(self.child, total_bytes=total, screen=None)
        with self.faults.guard("reading the last screen"):
            self.exit = build_exit(self.child, total_bytes=total, screen=self.output.screen(peek=True))
        with self.faults.guard("storing the end"):
            self.stored = store_exit(self.spec.leg_folder, self.exit)
        with self.faults.guard("telling of the end"):
            self._farewell(time.monotonic() + _FAREWELL_S)
        self._linger(_read_clock() + self._linger_s)

    def dismiss(self) -> None:
        """Leave soon after the child's end is reported: nobody will ask for the luggage."""
        self._linger_s = min(self._linger_s, _DISMISSED_S)
        if self._ended:
            self.loop.cancel("linger")
            self._linger(_read_clock() + self._linger_s)

    def _linger(self, until: float) -> None:
        """Stay for a daemon that wants the luggage, as long as one can find this holder."""
        left_s = until - _read_clock()
        if left_s <= 0:
            self._leave()
        elif not self._may_stay():
            self._leave_soon()
        else:
            self.loop.after("linger", min(left_s, _LOOKS_S), lambda: self._linger(until))

    def _farewell(self, deadline: float) -> None:
        """Report the end when every terminal has shown all output, or takes no more of it."""
        # Before anything is tried: an end nobody hears of is a session that works for ever.
        self.loop.cancel("farewell")
        self.loop.after("farewell", 0.01, lambda: self._farewell(deadline))
        if not self.terminals.settled() and time.monotonic() < deadline:
            return
        self.loop.cancel("farewell")
        event = self.exit_event()
        for terminal in tuple(self.terminals.all):
            with self.faults.guard("letting a terminal go"):
                self.terminals.remove(terminal, event)
        with self.faults.guard("telling of the last output"):
            self._settle()
        self.peers.broadcast(event)

    def exit_event(self) -> dict[str, object]:
        """Return the end as watchers and clients get it; `stored` is whether `exit.json` could be written."""
        record = self.exit or {}
        parts = {name: record.get(name) for name in ("status", "signal", "total_bytes")}
        return {"event": "exit", **parts, "stored": self.stored}

    def _leave(self) -> None:
        """End what the child left behind and stop: nobody came in time."""
        self.child.end_session()
        self.loop.stop()


def _read_clock() -> float:
    """Return the seconds since boot, the machine's sleep included: days are those of a calendar."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
