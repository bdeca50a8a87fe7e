"""A person's terminal across the legs of a session: between two of them it shows the bar and holds keys."""

import os
import select
import signal
import time

from agent_relay.client.attach.loop import attach
from agent_relay.client.attach.tty import Signals, UserTerminal, erase_rows, render_line, split_line
from agent_relay.domain.errors import RelayError
from agent_relay.terminal.restore import RESTORE_MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from agent_relay.client.attach.loop import AttachOutcome
    from agent_relay.client.attach.prompt import Command
    from agent_relay.terminal.keystrokes import HeldKeys, KeyScanner

    HoldBack = Callable[[], str]

_READ_BYTES = 64 << 10
# The rest of a key's escape sequence follows within this, or it was the Escape key, which cancels.
_KEY_S = 0.1
# Between two agents nothing moves but the bar; pastes come between marks, as the next agent may want them.
_HELD_MODES = RESTORE_MODES + b"\x1b[?2004h\x1b[?25l"
_INTERRUPT = b"\x03"
_BELL = b"\x07"
_UNDELIVERED_COLUMNS = 200


class HeldTerminal:
    """The terminal over several legs; a context manager that restores it whatever happens.

    `is_private` is true if the agent that came to rest never showed an input line, as at a sign-in: what was
    typed must reach no other agent.
    `hold_back` asks the daemon to hold the switch back and returns a line for the person, empty for none; it
    raises RelayError if that is not possible.
    """

    def __init__(
        self, hold_back: "HoldBack", *, relay_key: int = 0, terminal: UserTerminal | None = None
    ) -> None:
        self._hold_back = hold_back
        self._relay_key = relay_key
        self._terminal = terminal or UserTerminal()
        self._signals: Signals | None = None
        self._texts: list[str] = []
        self._message = ""
        self._was_refused = False
        # Whether the agent's screen is gone and the resting screen is not yet there.
        self._is_paused = False
        self._held: HeldKeys | None = None
        self._keys: KeyScanner | None = None
        # The resting agent, and the keys that retype its half-typed line.
        self._left = ("", b"")
        self.is_private = False
        # Whether what is held was typed at the resting screen, which may have come over a password.
        self._is_covert = False

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    @property
    def is_held(self) -> bool:
        """True if the terminal shows the bar, and nothing may be printed on it."""
        return bool(self._texts)

    def attach(
        self, socket_path: str, *, on_relay_key: "Command", line: str = "", rests: bool = False
    ) -> "AttachOutcome":
        """Attach as `loop.attach` does, with what was typed before; keep the terminal if there is a bar.

        An agent that `rests` is given none of it: it might answer a question about the limit.
        """
        was_held, held = self.is_held, b"" if rests else self._take_held(socket_path)
        self._message = ""
        self.end_pause()
        if self._signals is None:
            self._enter(self._terminal.__enter__)
        try:
            outcome = attach(
                socket_path,
                relay_key=self._relay_key,
                on_relay_key=on_relay_key,
                terminal=self._terminal,
                line=line,
                held=held,
                keep=was_held,
                hold_back=self._ask_below_agent,
            )
        except RelayError:
            # It was not attached: all of it is still ours.
            self._add(held)
            if not was_held:
                self._leave()
            raise
        self._was_refused = False
        self._texts = outcome.bar if outcome.why == "ended" else []
        self._take_typed(outcome, socket_path, rests=rests)
        if self._texts:
            self._terminal.write(_HELD_MODES + self._paint())
        else:
            if outcome.why == "resting":
                self._terminal.pause()
                self._is_paused = True
            else:
                self._leave()
            if outcome.is_abrupt:
                # The agent's screen stays, with the cursor in the middle of it.
                self._terminal.move_below()
        return outcome

    def _take_typed(self, outcome: "AttachOutcome", socket_path: str, *, rests: bool) -> None:
        """Keep what was typed on a leg, one that `rests` or not, for the next agent."""
        # The half-typed line of an agent that gives way goes to the next one; one that rests may continue.
        self._add(outcome.line if self._texts else b"")
        self.is_private = outcome.is_private
        # At a sign-in nothing that was typed is for another agent.
        self._add(b"" if outcome.why == "resting" and self.is_private else outcome.held)
        goes_on = outcome.why == "resting" and not self.is_private
        self._left = (socket_path, outcome.line) if goes_on else ("", b"")
        self._is_covert = goes_on or (rests and self._is_covert)
        if goes_on:
            self._take_unread()

    def _take_held(self, socket_path: str) -> bytes:
        """Return the half-typed line of another agent, if any, and what was typed after it."""
        if self._keys is not None:
            # The scanner of the next agent's holder goes on from what was typed.
            self._add(self._keys.release())
            self._keys = None
        held = self._held.take() if self._held is not None else b""
        if self._left[0] == socket_path:
            return held
        (_, half), self._left = self._left, ("", b"")
        return half + held

    def show(self, texts: "Sequence[str]") -> None:
        """Show this bar and hold what is typed; without texts give the terminal back to the person."""
        told = list(texts)
        if told == self._texts or not self._can_hold():
            return
        if not told:
            self._leave()
            return
        self.end_pause()
        was_held, self._texts = self.is_held, told
        if not was_held:
            self._message = ""
            self._enter(self._terminal.hold)
            self._terminal.write(_HELD_MODES)
        self._terminal.write(self._paint())

    def wait(self, fd: int, limit_s: float) -> None:
        """Wait until `fd` has something to read, at most `limit_s`; keep the bar and hold keys meanwhile.

        Ctrl-C is held for the next agent, as it is sent to a running one. Only after Escape could not cancel
        the handoff does it raise KeyboardInterrupt: the person wants to leave.
        """
        deadline = time.monotonic() + limit_s
        while (left_s := deadline - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if self._signals is not None:
                poll.register(self._terminal.source, select.POLLIN)
                poll.register(self._signals.fd, select.POLLIN)
            begun = self._keys is not None and bool(self._keys.held)
            ready = {number for number, _ in poll.poll(1000 * (min(left_s, _KEY_S) if begun else left_s))}
            if self._signals is not None and self._signals.fd in ready:
                self._handle_signals(self._signals.take())
            if self._signals is not None and self._terminal.source in ready:
                self._read()
            elif begun and self._keys is not None:
                self._keep(self._keys.release())
            if fd in ready:
                return

    def get_kept(self) -> bytes:
        """Return what was typed and is kept for the agent that continues."""
        held = self._held.take() if self._held is not None else b""
        self._add(held)
        return self._left[1] + held

    def drop_kept(self) -> None:
        """Give nothing of that to any other agent."""
        self._held, self._left = None, ("", b"")

    def end_pause(self) -> None:
        """End the pause; unread keys stay for the next reader, unless they are private."""
        if self._is_paused:
            self._terminal.leave(drops_unread=self.is_private)
            self._leave()

    def keep(self, typed: bytes) -> None:
        """Hold for the next agent what was typed at the resting screen."""
        self._is_covert = self._is_covert or bool(typed)
        if not self._add(typed):
            self._terminal.write(_BELL)

    def settle(self) -> str:
        """Give the terminal back; return a line about what was typed and not delivered, empty for nothing.

        Of what was typed at the resting screen it tells how much it was, not what.
        """
        if self.is_held or (self._is_paused and not self.is_private):
            self._take_unread()
        self._leave()
        held = self._held.take() if self._held is not None else b""
        return describe_undelivered(held, tells_text=not self._is_covert) if held else ""

    def _take_unread(self) -> None:
        """Hold the keys that are still unread; the switch can no longer be held back."""
        keys = self._open_keys()
        while select.select([self._terminal.source], [], [], 0)[0]:
            rest: bytes | None = self._read_source()
            if not rest:
                break
            while rest:
                passed, rest = keys.feed(rest, sift=True)
                self._add(passed)
        self._keys = None

    def _read_source(self) -> bytes:
        """Return what was typed; empty if the terminal is gone."""
        try:
            return os.read(self._terminal.source, _READ_BYTES)
        except OSError:
            return b""

    def _can_hold(self) -> bool:
        return self._terminal.is_tty and os.isatty(self._terminal.target)

    def _enter(self, take: "Callable[[], object]") -> None:
        signals = Signals()
        signals.__enter__()
        try:
            take()
            self._signals = signals
        finally:
            if self._signals is not signals:
                signals.__exit__()

    def _leave(self) -> None:
        if self._signals is None:
            return
        self._is_paused = False
        if self._texts:
            self._terminal.write(self._erase())
            self._texts = []
        self._terminal.__exit__()
        signals, self._signals = self._signals, None
        signals.__exit__()

    def _paint(self) -> bytes:
        from agent_relay.terminal.bar_row import render_bar

        rows, cols = self._terminal.cells()
        above = render_line(self._message, rows - 1, cols) if self._message and rows > 1 else b""
        return above + b"\x1b[?7l" + render_bar(self._texts, rows, cols)

    def _erase(self) -> bytes:
        """Return what clears the bar and the message above it, with the cursor left where they began."""
        rows, cols = self._terminal.cells()
        above = len(split_line(self._message, rows - 1, cols)) if self._message and rows > 1 else 0
        self._message = ""
        return erase_rows(above + 1, rows)

    def _handle_signals(self, seen: set[int]) -> None:
        if signal.SIGTSTP in seen:
            self._terminal.suspend()
            self._terminal.enter()
            self._terminal.write(_HELD_MODES)
        self._terminal.write(self._paint())

    def _read(self) -> None:
        data = self._read_source()
        if not data:
            raise SystemExit(128 + signal.SIGHUP)
        keys = self._open_keys()
        rest: bytes | None = data
        while rest:
            is_paste = keys.in_paste
            # What the terminal still answers the agent that is gone, nobody asked any more.
            passed, rest = keys.feed(rest, sift=True)
            is_paste = is_paste or keys.in_paste
            if self._was_refused and _INTERRUPT in passed and not (is_paste or b"\x1b[200~" in passed):
                raise KeyboardInterrupt
            self._keep(passed, is_paste=is_paste)
            if rest is not None:
                # There is no agent, and so no prompt.
                self._terminal.write(_BELL)

    def _keep(self, typed: bytes, *, is_paste: bool = False) -> None:
        from agent_relay.terminal.keystrokes import is_escape

        if is_escape(typed) and not is_paste:
            self._show_message(self._ask_to_hold_back())
        elif not self._add(typed):
            self._terminal.write(_BELL)

    def _open_keys(self) -> "KeyScanner":
        if self._keys is None:
            from agent_relay.terminal.keystrokes import KeyScanner
            from agent_relay.terminal.typed_line import TypedLine

            self._keys = KeyScanner(self._relay_key, TypedLine())
            self._keys.in_paste = self._held is not None and self._held.is_within
        return self._keys

    def _add(self, typed: bytes) -> bool:
        """Hold what was typed; return whether there was room."""
        if not typed:
            return True
        if self._held is None:
            from agent_relay.terminal.keystrokes import HeldKeys

            self._held = HeldKeys()
        return self._held.add(typed)

    def _ask_below_agent(self) -> str:
        """Ask to hold the switch back; return what to show above the bar until there is another agent."""
        self._message = self._ask_to_hold_back()
        return self._message

    def _ask_to_hold_back(self) -> str:
        self._was_refused = False
        try:
            return self._hold_back()
        except RelayError as error:
            self._was_refused = True
            return error.sentence

    def _show_message(self, message: str) -> None:
        self._message = f"{message} (Ctrl-C leaves)" if self._was_refused else message
        self._terminal.write(self._paint())


def describe_undelivered(data: bytes, *, tells_text: bool) -> str:
    """Return a line about what a person typed and no agent was given; empty if it contains no text."""
    from agent_relay.domain.text.plain import clean_text
    from agent_relay.terminal.bar_row import fit

    text = " ".join(clean_text(data.decode("utf-8", "replace").replace("\r", "\n")).split())
    if not text:
        return ""
    count = f"{len(text)} typed characters were" if len(text) > 1 else "1 typed character was"
    return f"{count} not delivered{f': {fit([text], _UNDELIVERED_COLUMNS)}' if tells_text else '.'}"
