"""The terminals attached to a leg: each with its own queue, none able to stall the agent or the others."""

import os
import time
from functools import partial

from agent_relay.logic.keystrokes import KeyScanner, TypedLine, is_focus
from agent_relay.system.holder.answering import Answering
from agent_relay.system.holder.loop import GONE, IN, OUT, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.system.holder.faults import Faults
    from agent_relay.system.holder.output import Output
    from agent_relay.system.holder.terminal import Terminal
    from agent_relay.system.holder.typing_queue import TypingQueue

READ_BYTES = 64 << 10
# As much as a line discipline holds: for one key, a larger buffer is only more memory to get and give back.
_TYPED_BYTES = 4 << 10
# A terminal with more than this waiting pauses the agent's output, but only while it makes progress.
HIGH_BYTES = 1 << 20
GRACE_S = 0.25
# The rest of a key's escape sequence follows within this, or it was the Escape key.
_KEY_S = 0.02
# The rest of a long answer of the terminal follows within this.
_ANSWER_S = 0.5
# A child that has begun a sequence mostly ends it within the next read.
_CALL_S = 0.05
_CALL_TRIES = 40


class Terminals:
    """All attached terminals of a leg.

    The child's terminal has the size of the one that was attached, resized or typed on last: a person in
    front of a large terminal is not confined by a small one forgotten elsewhere. `changed()` is called when
    one came, went or was typed on, `resized(size)` when the child's terminal shall have another size. `over`
    is whether some terminal has more waiting than it may, so that output should not be read, and `eased()` is
    called when such a one has caught up.
    """

    __slots__ = (
        "_active",
        "_answering",
        "_changed",
        "_eased",
        "_faults",
        "_loop",
        "_output",
        "_resized",
        "all",
        "key_at",
        "line",
        "over",
        "typing",
    )

    def __init__(
        self,
        loop: Loop,
        output: "Output",
        faults: "Faults",
        *,
        resized: "Callable[[tuple[int, int, int, int]], None]",
        changed: "Callable[[], None]",
        eased: "Callable[[], None]",
    ) -> None:
        self._loop = loop
        self._output = output
        self._faults = faults
        self._resized = resized
        self._changed = changed
        self._eased = eased
        self._active: Terminal | None = None
        self._answering = Answering()
        self.typing: TypingQueue | None = None
        self.all: list[Terminal] = []
        self.line = TypedLine()
        self.key_at: float | None = None
        self.over = False

    def add(self, terminal: "Terminal") -> None:
        """The terminal is attached: it is painted, and what is typed on it reaches the child.

        Raises OSError where it cannot be watched; then it is closed.
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
        self._rearm(terminal)
        self._activate(terminal)
        self._changed()

    def remove(self, terminal: "Terminal", event: "dict[str, object] | None" = None) -> None:
        """The terminal is let go, its client told why; the child does not notice."""
        if terminal not in self.all:
            return
        self.all.remove(terminal)
        self._loop.forget(terminal.fd)
        self._loop.cancel(terminal)
        guard = self._faults.guard
        with guard("dropping what waits for a terminal"):
            self._drop(terminal)
        with guard("giving colors back"):
            self._uncolor(terminal)
        os.close(terminal.fd)
        with guard("letting others type"):
            if self.typing is not None:
                self.typing.leave(terminal)
        with guard("choosing another terminal"):
            if self._active is terminal:
                self._active = None
                if self.all:
                    self._activate(self.all[-1])
        if event is not None:
            terminal.tell(event)
        self._changed()

    def _uncolor(self, terminal: "Terminal") -> None:
        """Which palette entries the program changed is known here only; all else its client gives back."""
        if reset := self._output.uncolor():
            try:
                # Behind half a sequence, maybe, which the first byte ends.
                os.write(terminal.fd, b"\x18" + reset)
            except OSError:
                return

    def resize(self, terminal: "Terminal", size: tuple[int, int, int, int]) -> None:
        """The person changed the terminal's size."""
        terminal.size = size
        self._active = None
        self._activate(terminal)

    def _activate(self, terminal: "Terminal") -> None:
        if self._active is not terminal:
            self._active = terminal
            self._resized(terminal.size)

    def send(self, data: bytes) -> None:
        """Give every terminal that keeps up the child's output."""
        self.over = False
        for terminal in tuple(self.all):
            if terminal.keeps_up:
                try:
                    self._send(terminal, data)
                except Exception as error:  # noqa: BLE001 - the root of one terminal's turn: the others get theirs
                    self._faults.note(error, "showing output")
                    self.remove(terminal, {"event": "detached"})

    def _send(self, terminal: "Terminal", data: bytes) -> None:
        if terminal.out:
            terminal.out += data
            self.over = self.over or len(terminal.out) > HIGH_BYTES
            return
        sent = self._write(terminal, data)
        if sent < len(data):
            terminal.out += data[sent:]
            terminal.progress = time.monotonic()
            self._rearm(terminal)

    def ask(self, answers: bytes) -> bool:
        """What was sent last asks what the emulator answers so; whether a terminal will answer instead."""
        return self._answering.ask(self._active, self.all, answers)

    def relieve(self) -> bool:
        """Give up on terminals that take nothing; whether output may be read again."""
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
        """Forget what waits for the terminal: it gets the screen as it is when it can take it."""
        self._drop(terminal)
        terminal.lagging = True
        self._rearm(terminal)

    def _drop(self, terminal: "Terminal") -> None:
        """Nothing waits for it any more; questions it was not shown are answered instead of it."""
        self._output.see_colors()
        if (answers := terminal.drop()) and self.typing is not None:
            self.typing.put(self, answers, in_paste=False)

    def call_for_person(self, terminal: "Terminal", data: bytes, *, tries: int = _CALL_TRIES) -> None:
        """Show what changes nothing on the screen, where the child is not in the middle of a sequence.

        A terminal that its client uses shows it at once: the client writes whole sequences only. Where no
        moment comes within a while, it is not shown.
        """
        if not data or not tries or terminal not in self.all:
            return
        if not terminal.covered and (terminal.lagging or self._output.is_within()):
            again = partial(self.call_for_person, terminal, data, tries=tries - 1)
            self._loop.after((terminal, data), _CALL_S, again)
        elif terminal.out and not terminal.covered:
            terminal.out += data
        else:
            self._write(terminal, data)

    def pause(self, terminal: "Terminal") -> None:
        """Its client uses the terminal itself: neither read nor written here until `resume`."""
        terminal.paused = True
        self.cover(terminal)

    def cover(self, terminal: "Terminal") -> None:
        """Its client shows something on it: not written here until `resume`; what is typed goes on."""
        terminal.covered = True
        self._drop(terminal)
        self._rearm(terminal)

    def take_unread(self, terminal: "Terminal") -> bytes:
        """What its client had sent before it paused; a tty keeps that for the client itself."""
        if terminal not in self.all or os.isatty(terminal.fd):
            return b""
        try:
            return os.read(terminal.fd, READ_BYTES)
        except OSError:
            return b""

    def resume(self, terminal: "Terminal") -> None:
        """The terminal is ours again; it is repainted."""
        terminal.paused = terminal.covered = False
        self.repaint(terminal)
        self._activate(terminal)

    def type(self, terminal: "Terminal", data: bytes) -> None:
        """Take what its client read, pastes between marks; a program that wants none gets them without."""
        if self.typing is not None and data:
            terminal.keys.bare = not self._output.wants_marks()
            self._take(terminal, self.typing, data)

    def rearm(self) -> None:
        """Whose turn it is to be read may have changed."""
        for terminal in self.all:
            self._rearm(terminal)

    def settled(self) -> bool:
        """Whether every terminal has all there is."""
        return not any((terminal.out or terminal.lagging) and not terminal.covered for terminal in self.all)

    def _rearm(self, terminal: "Terminal") -> None:
        events = 0
        if not terminal.paused:
            readable = self.typing is not None and self.typing.may_read(terminal) and not terminal.ended
            writable = not terminal.covered and (bool(terminal.out) or terminal.lagging)
            events = IN * readable | OUT * writable
        self._loop.want(terminal.fd, events)

    def _write(self, terminal: "Terminal", data: "bytes | bytearray") -> int:
        try:
            return os.write(terminal.fd, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.remove(terminal, {"event": "terminal-gone"})
            return len(data)

    def _serve(self, terminal: "Terminal", ready: int) -> None:
        if ready & OUT:
            if terminal.lagging and not terminal.covered:
                terminal.lagging = False
                terminal.out[:] = self._output.repaint()
            sent = self._write(terminal, terminal.out)
            if sent:
                terminal.take(sent)
                if self.over and len(terminal.out) <= HIGH_BYTES // 2:
                    self._eased()
            if terminal in self.all and not terminal.out:
                self._rearm(terminal)
        if ready & IN and terminal in self.all:
            self._read(terminal)
        elif ready & GONE and not ready & OUT:
            self.remove(terminal, {"event": "terminal-gone"})

    def _read(self, terminal: "Terminal") -> None:
        typing = self.typing
        if typing is None or terminal.paused:
            return
        try:
            data = os.read(terminal.fd, _TYPED_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self.remove(terminal, {"event": "terminal-gone"})
            return
        if not data:
            terminal.ended = True
            typing.end_of_file(terminal)
            self._rearm(terminal)
            return
        if terminal is self._active and not terminal.covered and terminal.keys.is_plain(data):
            # Nearly all that is typed goes the shortest way, and is counted when the child has it.
            typing.put(terminal, data, in_paste=False)
            self.line.count += len(data)
            self.key_at = time.monotonic()
            self._changed()
            return
        self._loop.cancel(terminal)
        self._take(terminal, typing, data)

    def _take(self, terminal: "Terminal", typing: "TypingQueue", data: bytes) -> None:
        """Input of the terminal: what a person does makes it the active one; what it answers does not."""
        keys, now = terminal.keys, time.monotonic()
        answering = self._answering.find(self._active, self.all, now)
        # With one terminal, as nearly always, nothing is to be told apart.
        sift = terminal is not self._active or terminal is not answering
        passed, rest = self._scan(terminal, data, sift=sift)
        keys = terminal.keys
        answers = keys.answers if answering is terminal else b""
        if answers or passed:
            typing.put(terminal, answers + passed, in_paste=keys.in_paste)
        if keys.held or keys.answering:
            self._loop.after(terminal, _KEY_S if keys.held else _ANSWER_S, lambda: self._release(terminal))
        if not sift or rest is not None or (passed and not is_focus(passed)):
            self.key_at = now
            if terminal.covered:
                terminal.tell({"event": "typed"})
            if self._active is not terminal:
                self._activate(terminal)
        self._changed()
        if not typing.may_read(terminal):
            self._rearm(terminal)
        if rest is not None:
            self.pause(terminal)
            terminal.tell({"event": "relay-key", "rest": rest.decode("latin-1")})

    def _scan(self, terminal: "Terminal", data: bytes, *, sift: bool) -> tuple[bytes, bytes | None]:
        """As the terminal's scanner says; where that raises, all of it reaches the child, as it came."""
        keys = terminal.keys
        held = keys.held
        try:
            return keys.feed(data, sift=sift)
        except Exception as error:  # noqa: BLE001 - the root of one read: what is typed is the agent's anyway
            self._faults.note(error, "reading keys")
            terminal.keys = KeyScanner(keys.relay_key, self.line)
            return held + data, None

    def _release(self, terminal: "Terminal") -> None:
        held = terminal.keys.release()
        if held and self.typing is not None:
            self.typing.put(terminal, held, in_paste=terminal.keys.in_paste)
            self._activate(terminal)
