"""The terminals attached to a leg: each with its own queue, none able to stall the agent or the others."""

import os
import time
from functools import partial

from agent_relay.terminal._bar_frame import BarFrame, render_scroll
from agent_relay.terminal.bar_row import render_lone_bar
from agent_relay.terminal.holder._event_loop import GONE, IN, OUT, Loop
from agent_relay.terminal.holder._typed_input import AnswerRouter, TerminalInput
from agent_relay.terminal.holder._typing_queue import TypingQueue
from agent_relay.terminal.typed_line import TypedLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.terminal.holder._event_loop import Faults
    from agent_relay.terminal.holder._output import Output
    from agent_relay.terminal.holder._terminal import Bar, Terminal

READ_BYTES = 64 << 10
# A terminal with more than this waiting pauses the agent's output, but only while it makes progress.
HIGH_BYTES = 1 << 20
GRACE_S = 0.25
# While the bar is shown, terminals are painted at most this often.
_FRAME_S = 0.04
# A child that has begun a sequence mostly ends it within the next read.
_CALL_S = 0.05
_CALL_TRIES = 40


class Terminals:
    """All attached terminals of a leg.

    The child's terminal, `master`, has the size of the one that was attached, resized or typed on last: a
    person in front of a large terminal is not confined by a small one forgotten elsewhere. `changed()` is
    called when one came, went or was typed on, `resized(size)` when the child's terminal must have another
    size. `over` is whether some terminal has more waiting than it may, so that output should not be read, and
    `eased()` is called when such a one has caught up. `has_read()` is whether the child has read all that was
    typed.
    """

    __slots__ = (
        "_answering",
        "_eased",
        "_faults",
        "_loop",
        "_output",
        "_resized",
        "_sending",
        "active",
        "all",
        "bar",
        "changed",
        "input",
        "key_at",
        "line",
        "over",
        "question",
        "typing",
    )

    def __init__(
        self,
        loop: Loop,
        master: int,
        output: "Output",
        faults: "Faults",
        *,
        resized: "Callable[[tuple[int, int, int, int]], None]",
        changed: "Callable[[], None]",
        eased: "Callable[[], None]",
        has_read: "Callable[[], bool]",
    ) -> None:
        self._loop = loop
        self._output = output
        self._faults = faults
        self._sending = faults.guard("showing output")
        self._resized = resized
        self.changed = changed
        self._eased = eased
        self.active: Terminal | None = None
        self._answering = AnswerRouter()
        self.typing = TypingQueue(loop, master, self.rearm)
        self.input = TerminalInput(self, loop, output, faults, has_read)
        self.all: list[Terminal] = []
        self.bar: Bar | None = None
        self.question: Bar | None = None
        self.line = TypedLine()
        self.key_at: float | None = None
        self.over = False

    def add(self, terminal: "Terminal") -> None:
        """Attach the terminal: paint it, and pass what is typed on it to the child.

        Raise OSError if it cannot be watched; then it is closed.
        """
        try:
            self._loop.watch(
                terminal.fd,
                OUT,
                lambda ready: self._serve(terminal, ready),
                lambda: self.remove(terminal, {"event": "detached"}),
            )
        except OSError:
            os.close(terminal.fd)
            raise
        self.all.append(terminal)
        self._show_bar(terminal)
        self.rearm_one(terminal)
        self.activate(terminal)
        self.changed()

    @property
    def holds_keys(self) -> bool:
        """True while what is typed is held."""
        return self.bar is not None and self.bar.holds_keys

    def submit_line(self) -> None:
        """Count nothing as half typed; below a bar its keys stay, as relay submits something else."""
        if self.holds_keys:
            self.line.count = 0
        else:
            self.line.clear()

    def set_bar(self, bar: "Bar | None") -> None:
        """Show this bar on every terminal from now on; if the bar is removed, type what was held."""
        was_lone = self.bar is not None and self._output.emulator is None
        self.bar = bar
        if not (self.holds_keys or self.line.count):
            self.line.clear()
        for terminal in tuple(self.all):
            with self._faults.guard("showing the bar"):
                self._show_bar(terminal)
                if was_lone and bar is None:
                    self.repaint(terminal)
        if bar is not None and self._output.emulator is None:
            self._show_output()

    def show_question(self, question: "Bar") -> None:
        """Keep what is held below this bar until another one is set: the child asks something.

        If nothing is held, no bar is shown until a terminal brings held keys with it.
        """
        self.question = question
        bar = question if self.input.held else None
        if bar is not None or self.bar is not None:
            self.set_bar(bar)

    def _show_bar(self, terminal: "Terminal") -> None:
        if self.bar is None or not terminal.keys.in_paste:
            self.input.hold(terminal)
        if self.bar is None:
            self.input.type_held(terminal)
        if self.bar is None or self._output.emulator is None:
            if terminal.frame is not None:
                terminal.keeps, terminal.frame = terminal.frame.keeps, None
                self.repaint(terminal)
        elif terminal.frame is None:
            terminal.frame = BarFrame(keeps=terminal.keeps)
            self.repaint(terminal)
        terminal.lagging = terminal.lagging or terminal.frame is not None
        self.rearm_one(terminal)

    def see_output(self) -> None:
        """Paint the terminals with the bar soon: there may be new output."""
        if self.bar is not None:
            self._loop.after("bar", _FRAME_S, self._show_output)

    def _show_output(self) -> None:
        for terminal in self.all:
            if terminal.frame is not None and self._output.emulator is None:
                # It broke, too often to be replaced: from now on there is only the program's own output.
                self._show_bar(terminal)
            if terminal.frame is not None:
                terminal.lagging = True
            elif self.bar is not None and terminal.keeps_up:
                rows, cols, _, _ = terminal.size
                terminal.out += render_lone_bar(self.bar.texts, rows, cols)
            self.rearm_one(terminal)

    def _paint(self, terminal: "Terminal") -> bytes:
        """Return what brings the terminal up to date."""
        rows, cols, _, _ = terminal.size
        if terminal.frame is not None and self.bar is not None:
            return self._output.paint_frame(terminal.frame, self.bar, rows=rows, cols=cols)
        keeps, terminal.keeps = terminal.keeps, False
        return (render_scroll(rows) if keeps else b"") + self._output.repaint()

    def remove(self, terminal: "Terminal", event: "dict[str, object] | None" = None) -> None:
        """Remove the terminal and send its client the `event` that says why; the child does not notice."""
        if terminal not in self.all:
            return
        held = b""
        with self._faults.guard("giving held keys back"):
            held = self.input.take_held(terminal)
        self.all.remove(terminal)
        self._loop.forget(terminal.fd)
        self._loop.cancel(terminal)
        guard = self._faults.guard
        with guard("dropping what waits for a terminal"):
            self._drop(terminal)
        with guard("giving colors back"):
            self._uncolor(terminal)
        os.close(terminal.fd)
        if event is not None:
            shown = self.bar.texts if self.bar is not None else []
            # The last one to go takes the line along: two would type it twice.
            is_open = terminal.keys.in_paste and not terminal.holds
            line = b"" if self.all else self.line.render_keys(is_open=is_open)
            said = {"held": held.decode("latin-1"), "line": line.decode("latin-1"), "bar": shown}
            terminal.tell({**event, **said})
        with guard("letting others type"):
            self.typing.leave(terminal)
        with guard("choosing another terminal"):
            if self.active is terminal:
                self.active = None
                if self.all:
                    self.activate(self.all[-1])
        self.changed()

    def _uncolor(self, terminal: "Terminal") -> None:
        """Reset the palette entries the program changed, known only here; the client restores all else."""
        if reset := self._output.uncolor():
            try:
                # Behind half a sequence, maybe, which the first byte ends.
                os.write(terminal.fd, b"\x18" + reset)
            except OSError:
                return

    def resize(self, terminal: "Terminal", size: tuple[int, int, int, int]) -> None:
        """Set the terminal's new size, which the child's terminal gets too."""
        terminal.size = size
        if terminal.frame is not None:
            self.repaint(terminal)
        self.active = None
        self.activate(terminal)

    def activate(self, terminal: "Terminal") -> None:
        """Give the child's terminal the size of this one."""
        if self.active is not terminal:
            self.active = terminal
            self._resized(terminal.size)

    def send(self, data: bytes) -> None:
        """Give the child's output to every terminal that keeps up."""
        self.over = False
        for terminal in tuple(self.all):
            if terminal.keeps_up:
                with self._sending:
                    self._send(terminal, data)
                if self._sending.failed:
                    self.remove(terminal, {"event": "detached"})

    def _send(self, terminal: "Terminal", data: bytes) -> None:
        if terminal.out:
            terminal.out += data
            self.over = self.over or len(terminal.out) > HIGH_BYTES
            return
        sent = self.write(terminal, data)
        if sent < len(data):
            terminal.out += data[sent:]
            terminal.progress = time.monotonic()
            self.rearm_one(terminal)

    def ask(self, answers: bytes) -> bool:
        """Record the question behind the emulator's `answers`; return whether a terminal answers instead."""
        return self._answering.ask(self.active, self.all, answers)

    def find_answering(self, now: float) -> "Terminal | None":
        """Return the terminal whose answers, coming `now`, reach the program."""
        return self._answering.find(self.active, self.all, now)

    def relieve(self) -> bool:
        """Give up on terminals that take nothing; return whether output may be read again."""
        now = time.monotonic()
        free = True
        for terminal in self.all:
            if len(terminal.out) > HIGH_BYTES // 2:
                if now - terminal.progress > GRACE_S:
                    self.repaint(terminal)
                else:
                    free = False
        return free

    def repaint(self, terminal: "Terminal") -> None:
        """Drop what waits for the terminal: it gets the screen as it is when it can take it."""
        self._drop(terminal)
        if terminal.frame is not None:
            terminal.frame.forget()
        terminal.lagging = True
        self.rearm_one(terminal)

    def _drop(self, terminal: "Terminal") -> None:
        """Drop what waits for the terminal; answer the questions it was not shown in its place."""
        self._output.see_colors()
        if answers := terminal.drop():
            self.typing.put(self, answers, in_paste=False)

    def send_alert(self, terminal: "Terminal", data: bytes, *, tries: int = _CALL_TRIES) -> None:
        """Send what changes nothing on the screen, once the child is not in the middle of a sequence.

        A terminal that its client uses gets it at once: the client writes whole sequences only. If no such
        moment comes within 2 s, it is not sent.
        """
        if not data or not tries or terminal not in self.all:
            return
        # Below the bar, the terminal gets whole pictures only.
        is_within = terminal.frame is None and self._output.is_within()
        if not terminal.covered and (terminal.lagging or is_within):
            again = partial(self.send_alert, terminal, data, tries=tries - 1)
            self._loop.after((terminal, data), _CALL_S, again)
        elif terminal.out and not terminal.covered:
            terminal.out += data
        else:
            self.write(terminal, data)

    def pause(self, terminal: "Terminal") -> None:
        """Leave the terminal to its client: neither read nor write it until `resume`."""
        terminal.paused = True
        self.cover(terminal)

    def cover(self, terminal: "Terminal") -> None:
        """Let its client show something on it: do not write it until `resume`; what is typed goes on."""
        terminal.covered = True
        self._drop(terminal)
        self.rearm_one(terminal)

    def resume(self, terminal: "Terminal") -> None:
        """Take the terminal back from its client and repaint it."""
        terminal.paused = terminal.covered = False
        self.repaint(terminal)
        self.activate(terminal)

    def rearm(self) -> None:
        """Update which terminals are to be read."""
        for terminal in self.all:
            self.rearm_one(terminal)

    def settled(self) -> bool:
        """Return whether every terminal has been shown all output."""
        return not any((terminal.out or terminal.lagging) and not terminal.covered for terminal in self.all)

    def rearm_one(self, terminal: "Terminal") -> None:
        """Update whether the terminal is to be read or written."""
        events = 0
        if not terminal.paused:
            may_read = terminal.holds or self.typing.may_read(terminal)
            readable = may_read and not terminal.ended
            writable = not terminal.covered and (bool(terminal.out) or terminal.lagging)
            events = IN * readable | OUT * writable
        self._loop.want(terminal.fd, events)

    def write(self, terminal: "Terminal", data: "bytes | bytearray") -> int:
        """Write to the terminal; return how much it took. Remove one that is gone, as if it had taken all."""
        try:
            return os.write(terminal.fd, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.remove(terminal, {"event": "terminal-gone"})
            return len(data)

    def _serve(self, terminal: "Terminal", ready: int) -> None:
        if ready & OUT:
            # What waits of a frame is shown first: the next one is told from it.
            if terminal.lagging and not terminal.covered and not (terminal.out and terminal.frame):
                terminal.lagging = False
                terminal.out[:] = self._paint(terminal)
            sent = self.write(terminal, terminal.out)
            if sent:
                terminal.take(sent)
                if self.over and len(terminal.out) <= HIGH_BYTES // 2:
                    self._eased()
            if terminal in self.all and not terminal.out:
                self.rearm_one(terminal)
        if ready & IN and terminal in self.all:
            self.input.read(terminal)
        elif ready & GONE and not ready & OUT:
            self.remove(terminal, {"event": "terminal-gone"})
