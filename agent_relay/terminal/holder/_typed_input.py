"""Handle what people type on a leg's terminals: pass it on, hold it below the bar, or report it."""

import _socket
import os
import time

from agent_relay.terminal.holder._typing_queue import PacedKeys
from agent_relay.terminal.keystrokes import KeyScanner, is_escape, is_focus, split_keys
from agent_relay.terminal.query_answers import count_cursor
from agent_relay.terminal.typed_line import TypedLine

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from agent_relay.terminal.holder._event_loop import Faults, Loop
    from agent_relay.terminal.holder._output import Output
    from agent_relay.terminal.holder._terminal import Bar, Terminal
    from agent_relay.terminal.holder._typing_queue import TypingQueue

    class Terminals(Protocol):
        """All terminals of a leg, as far as what is typed on one concerns the others."""

        active: Terminal | None
        all: list[Terminal]
        bar: Bar | None
        changed: Callable[[], None]
        key_at: float | None
        line: TypedLine
        question: Bar | None
        typing: TypingQueue

        @property
        def holds_keys(self) -> bool:
            """True while what is typed is held."""

        def activate(self, terminal: Terminal) -> None:
            """Give the child's terminal the size of this one."""

        def find_answering(self, now: float) -> Terminal | None:
            """Return the terminal whose answers reach the program."""

        def pause(self, terminal: Terminal) -> None:
            """Leave the terminal to its client."""

        def rearm_one(self, terminal: Terminal) -> None:
            """Update whether the terminal is to be read."""

        def set_bar(self, bar: Bar | None) -> None:
            """Show this bar on every terminal from now on."""

        def remove(self, terminal: Terminal, event: dict[str, object]) -> None:
            """Remove the terminal."""

        def write(self, terminal: Terminal, data: bytes) -> int:
            """Write to the terminal; return how many bytes it took."""


# An answer that takes longer to come is not told from one to a later question.
_LATEST_ANSWER_S = 2.0


class AnswerRouter:
    """Chooses who answers: the terminal active when the program asked, if it kept up; else the active one.

    The emulator's own answer shows that a question was asked, at no cost for other output.
    """

    __slots__ = ("_asked", "_asked_at", "_who")

    def __init__(self) -> None:
        self._asked = False
        self._asked_at = 0.0
        self._who: Terminal | None = None

    def ask(self, active: "Terminal | None", attached: "Sequence[Terminal]", answers: bytes) -> bool:
        """Record the question behind the emulator's `answers`; return whether a terminal answers instead."""
        who = active if active is not None and active.keeps_up else None
        if len(attached) > 1:
            self._who, self._asked, self._asked_at = who, True, time.monotonic()
            count = count_cursor(answers)
            for terminal in attached:
                if terminal.keeps_up:
                    terminal.keys.cursor_due += count
        if who is not None:
            who.owe(answers)
        return who is not None

    def find(
        self, active: "Terminal | None", attached: "Sequence[Terminal]", now: float
    ) -> "Terminal | None":
        """Return the terminal whose answers, coming `now`, reach the program."""
        if self._asked and now - self._asked_at > _LATEST_ANSWER_S:
            self._who, self._asked = None, False
            for terminal in attached:
                terminal.keys.cursor_due = 0
        return self._who if self._who in attached else active


# As much as a line discipline holds: for one key, a larger buffer is only more memory to get and give back.
_TYPED_BYTES = 4 << 10
_UNREAD_BYTES = 64 << 10
# The rest of a key's escape sequence follows within this, or it was the Escape key.
_KEY_S = 0.02
# Below the bar, Escape cancels a handoff: a sequence whose rest comes late over a network must not.
_HELD_KEY_S = 0.1
# The rest of a long answer of the terminal follows within this.
_ANSWER_S = 0.5
_BELL = b"\x07"


class TerminalInput:
    """The input of all of a leg's `terminals`; the one a person types on becomes the active one."""

    __slots__ = ("_faults", "_loop", "_output", "_paced", "_terminals")

    def __init__(
        self,
        terminals: "Terminals",
        loop: "Loop",
        output: "Output",
        faults: "Faults",
        has_read: "Callable[[], bool]",
    ) -> None:
        self._terminals = terminals
        self._loop = loop
        self._output = output
        self._faults = faults
        self._paced = PacedKeys(loop, self._give, has_read, self._see_given)

    @property
    def held(self) -> int:
        """Number of bytes that were typed and not given to the agent yet."""
        return self._paced.size + sum(terminal.held.size for terminal in self._terminals.all)

    def read(self, terminal: "Terminal") -> None:
        """Read what is available and process it."""
        terminals = self._terminals
        if terminal.paused:
            return
        try:
            data = os.read(terminal.fd, _TYPED_BYTES)
        except BlockingIOError:
            return
        except OSError:
            terminals.remove(terminal, {"event": "terminal-gone"})
            return
        if not data:
            self._end(terminal)
            return
        is_usual = terminal is terminals.active and not (terminal.covered or terminal.holds)
        if is_usual and terminal.keys.is_plain(data):
            # Nearly all that is typed goes the shortest way, and is counted when the child has it.
            terminals.typing.put(terminal, data, in_paste=False)
            terminals.line.add(data, len(data))
            terminals.key_at = time.monotonic()
            terminals.changed()
            return
        self._loop.cancel(terminal)
        self._take(terminal, data)

    def type(self, terminal: "Terminal", data: bytes) -> None:
        """Process what its client read, pastes between marks; without them if the program wants none."""
        if data:
            if not terminal.keys.in_paste:
                terminal.keys.bare = not terminal.holds and not self._output.wants_marks()
            self._take(terminal, data)

    def _end(self, terminal: "Terminal") -> None:
        """Read the terminal no more; report the end to the agent once it has what came before."""
        terminal.ended = True
        terminal.owes_end = terminal.holds
        if not terminal.holds:
            self._terminals.typing.end_of_file(terminal)
        self._terminals.rearm_one(terminal)

    def _take(self, terminal: "Terminal", data: bytes) -> None:
        """Process input of the terminal: what a person does makes it the active one; its answers do not."""
        terminals, now = self._terminals, time.monotonic()
        holds, is_paste = terminal.holds, terminal.keys.in_paste
        answering = terminals.find_answering(now)
        # With one terminal, as nearly always, nothing is to be told apart.
        sift = holds or terminal is not terminals.active or terminal is not answering
        passed, rest = self._scan(terminal, data, sift=sift)
        keys = terminal.keys
        answers = keys.answers if answering is terminal else b""
        if holds:
            self._hold_typed(terminal, passed, is_paste=is_paste or keys.in_paste)
        if answers or (passed and not holds):
            given = answers if holds else answers + passed
            terminals.typing.put(terminal, given, in_paste=keys.in_paste and not holds)
        if holds is not terminals.holds_keys and not keys.in_paste:
            # A paste goes whole to whoever got its beginning.
            self.hold(terminal)
        if keys.held or keys.answering:
            key_s = _HELD_KEY_S if terminal.holds else _KEY_S
            self._loop.after(terminal, key_s if keys.held else _ANSWER_S, lambda: self._release(terminal))
        if not sift or rest is not None or (passed and not is_focus(passed)):
            terminals.key_at = now
            if terminal.covered:
                terminal.tell({"event": "typed"})
            if terminals.active is not terminal:
                terminals.activate(terminal)
        terminals.changed()
        if not terminals.typing.may_read(terminal):
            terminals.rearm_one(terminal)
        if rest is not None:
            terminals.pause(terminal)
            terminal.tell({"event": "relay-key", "rest": rest.decode("latin-1")})

    def _scan(self, terminal: "Terminal", data: bytes, *, sift: bool) -> tuple[bytes, bytes | None]:
        """Scan the data with the terminal's scanner; if that raises, pass all of it on as it came."""
        keys = terminal.keys
        held = keys.held
        with self._faults.guard("reading keys"):
            return keys.feed(data, sift=sift)
        terminal.keys = KeyScanner(keys.relay_key, keys.line)
        return held + data, None

    def _release(self, terminal: "Terminal") -> None:
        held = terminal.keys.release()
        if held and terminal.holds:
            self._hold_typed(terminal, held, is_paste=terminal.keys.in_paste)
        elif held:
            self._terminals.typing.put(terminal, held, in_paste=terminal.keys.in_paste)
            self._terminals.activate(terminal)

    def hold(self, terminal: "Terminal") -> None:
        """Hold what is typed from now on, or give it to the agent, as the bar says.

        Without a bar it is held as long as what was typed before is still being given. Below a bar no more of
        that is given: an agent that asks something would take it for an answer.
        """
        terminals = self._terminals
        if terminals.bar is not None and (first := self._paced.take(terminal)):
            then = terminal.held.take()
            terminal.held.add(first)
            terminal.held.add(then)
        terminal.holds = terminals.holds_keys or self._paced.waits(terminal)
        # What the agent was not given does not wait in its line.
        terminal.keys.line = TypedLine() if terminal.holds else terminals.line

    def _hold_typed(self, terminal: "Terminal", typed: bytes, *, is_paste: bool) -> None:
        """Keep what was typed; below the bar, Escape alone is for relay."""
        if self._terminals.holds_keys and is_escape(typed) and not is_paste:
            terminal.tell({"event": "hold-back"})
        elif not terminal.held.add(typed):
            if terminal.out and not terminal.covered:
                terminal.out += _BELL
            else:
                self._terminals.write(terminal, _BELL)

    def hold_again(self, terminal: "Terminal", typed: bytes) -> None:
        """Put what was typed before the terminal was attached first; without a bar type it at once."""
        terminals = self._terminals
        if typed and terminal in terminals.all:
            self._hold_typed(terminal, typed, is_paste=True)
            terminal.keys.in_paste = terminal.held.is_within
            if terminals.bar is None and terminals.question is not None:
                terminals.set_bar(terminals.question)
            elif terminals.bar is None:
                self.type_held(terminal)

    def type_held(self, terminal: "Terminal") -> None:
        """Give the agent what was held, at a pace at which it takes keys for keys."""
        if self._terminals.typing.closed:
            return
        if not terminal.held.size:
            if not self._paced.waits(terminal):
                self._see_given(terminal)
            return
        goes_on = terminal.held.is_within
        data = terminal.held.take()
        # The rest of a paste that is under way comes by itself, and soon.
        self._paced.put(terminal, [data] if goes_on else split_keys(data), in_paste=goes_on)
        self.hold(terminal)

    def _give(self, terminal: "Terminal", piece: bytes, in_paste: bool) -> None:  # noqa: FBT001 - a callback
        """Type what was held, pastes between marks only if the agent wants those."""
        keys = KeyScanner(0, self._terminals.line)
        keys.bare = is_bare = not self._output.wants_marks()
        typed, _ = keys.feed(piece)
        self._terminals.typing.put(terminal, typed + keys.release(), in_paste=in_paste)
        if in_paste and is_bare:
            terminal.keys.bare = True
            # The mark of the paste's end may have begun.
            terminal.keys.held = keys.held + terminal.keys.held
        self._terminals.changed()

    def _see_given(self, terminal: "Terminal") -> None:
        """Type what was held since, if any; else give the terminal's keys to the agent at once again."""
        if terminal.held.size:
            self.type_held(terminal)
            return
        self.hold(terminal)
        if terminal.owes_end:
            terminal.owes_end = False
            self._terminals.typing.end_of_file(terminal)
        self._terminals.rearm_one(terminal)

    def take_unread(self, terminal: "Terminal") -> bytes:
        """Return what the client had sent before it paused; empty for a tty, whose client reads it itself."""
        if terminal not in self._terminals.all or os.isatty(terminal.fd):
            return b""
        try:
            return os.read(terminal.fd, _UNREAD_BYTES)
        except OSError:
            return b""

    def take_held(self, terminal: "Terminal") -> bytes:
        """Return what was typed on a terminal to be removed and not given to the agent, unread input too."""
        if terminal.holds:
            if not os.isatty(terminal.fd):
                sock = _socket.socket(fileno=os.dup(terminal.fd))
                # What its client sends from now on is refused, and so stays with the client.
                sock.shutdown(_socket.SHUT_RD)
                sock.close()
            while part := self.take_unread(terminal):
                passed, rest = self._scan(terminal, part, sift=True)
                terminal.held.add(passed + (rest or b""))
            is_paste, begun = terminal.keys.in_paste, terminal.keys.release()
            if is_escape(begun) and not is_paste:
                terminal.tell({"event": "hold-back"})
            else:
                terminal.held.add(begun)
        return self._paced.take(terminal) + terminal.held.take()
