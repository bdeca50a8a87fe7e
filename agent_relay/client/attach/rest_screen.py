"""The screen a person sees while every agent rests, fitted to the terminal, with one key for each choice."""

import os
import select
import signal
import time
from datetime import UTC, datetime

from agent_relay.client.attach.prompt import DETACH, LinePrompt
from agent_relay.client.attach.prompt_input import ESCAPE, PromptInput
from agent_relay.client.attach.rest_status import KeptText, RestStatus, fit, list_lines
from agent_relay.client.attach.session_loop import CONTINUE, LEFT, SHOW_SCREEN
from agent_relay.client.attach.tty import Signals, UserTerminal
from agent_relay.domain.errors import DaemonUnreachableError, RelayError, WrongUseError
from agent_relay.terminal.typed_line import PASTE_BEGIN, PASTE_END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.client.attach.held_terminal import HeldTerminal
    from agent_relay.client.attach.prompt import Command
    from agent_relay.client.attach.session_loop import SessionPlace
    from agent_relay.client.connection import Connection


IGNORE_KEYS_S = 0.7
"""Seconds without a key before keys count: a person typing to an agent must not choose by accident."""
ALONE_S = 0.25
"""Seconds without another key before a key counts: the first letter of a word is no choice."""
_LOOK_S = 30.0
"""Seconds between questions to the daemon without a notice: another terminal may change the ledger."""
_AGAIN_S = 1.0
_ANSWER_S = 30.0
_SPLIT_S = 0.1
"""Longest wait for the rest of an escape sequence, in seconds; Escape alone is a key."""
# The screen is put aside, keys arrive plain, and pastes between marks: none of their letters is a key.
_ENTER = b"\x1b[?1049h\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[=0;1u\x1b[>4m\x1b[?2004h\x1b[?25l\x1b[2J"
_BELL = b"\x07"
_RETURN = frozenset((b"\r", b"\n"))
_LEAVE = frozenset((b"l", b"q", b"\x03"))
_ERASE = frozenset((b"\x08", b"\x7f"))
_EDITS = _ERASE | {b"\r", b"\x15", b"\x17"}
"""Editing keys that are kept, too, of a text that is being typed when the screen appears."""


def show_rest(
    place: "SessionPlace",
    *,
    held: "HeldTerminal",
    reconnect: "Callable[[], Connection]",
    agree_always: "Callable[[], None]",
    relay_key: int,
    on_relay_key: "Command",
) -> tuple[str, str]:
    """Show the resting screen; return how it ended, and a line to print.

    The rest of a text that was being typed when the screen appeared is `held` for the agent that continues.
    `relay_key` opens the relay prompt, whose lines go to `on_relay_key`. It ends with `LEFT`, `SHOW_SCREEN`
    for the agent's own, or `CONTINUE` if the rest is over. `agree_always` writes into the configuration that
    work goes on by itself at every reset. The terminal is restored on every way out. Raises SystemExit with
    128 + number on SIGTERM, SIGHUP, SIGINT and SIGQUIT, or when the terminal is gone.
    """
    held.end_pause()
    with Signals() as signals, UserTerminal(over=True) as terminal:
        screen = _RestScreen(
            place,
            terminal,
            signals,
            held=held,
            reconnect=reconnect,
            agree_always=agree_always,
            relay_key=relay_key,
            on_relay_key=on_relay_key,
        )
        try:
            how = screen.run()
        finally:
            screen.close()
    held.keep(screen.kept)
    return how, screen.parting


class _RestScreen:
    def __init__(
        self,
        place: "SessionPlace",
        terminal: UserTerminal,
        signals: Signals,
        *,
        held: "HeldTerminal",
        reconnect: "Callable[[], Connection]",
        agree_always: "Callable[[], None]",
        relay_key: int,
        on_relay_key: "Command",
    ) -> None:
        self._relay_key = relay_key
        self._on_relay_key = on_relay_key
        self._typed: list[bytes] = []
        self._held = held
        self._types_on = not held.is_private
        self._kept = KeptText(_read_text(_split(held.get_kept())))
        self._session = place.session
        self._leg = place.leg
        self._terminal = terminal
        self._signals = signals
        self._reconnect = reconnect
        self._agree_always = agree_always
        self._daemon: Connection | None = None
        self._rest = RestStatus({}, has_leg=bool(place.leg))
        self._input = PromptInput(_read_nothing)
        self._chooses = False
        self._notice = ""
        self._painted: tuple[object, ...] = ()
        self._ignore_keys_until = time.monotonic() + IGNORE_KEYS_S
        self._ask_at = 0.0
        self._how = ""

    @property
    def parting(self) -> str:
        """The line to print for a person who left."""
        plan = f" {self._rest.plan}" if self._rest.plan else ""
        return f"Detached; the session is resting.{plan} To return: agent-relay attach {self._session}"

    @property
    def kept(self) -> bytes:
        """The keys for the agent that continues; a single one without a text was meant for this screen."""
        return b"".join(self._typed) if len(self._typed) > 1 or self._held.get_kept() else b""

    def run(self) -> str:
        self._terminal.write(_ENTER)
        while not self._how:
            if time.monotonic() >= self._ask_at:
                self._ask()
            if not self._how:
                self._paint()
                self._wait()
        return self._how

    def close(self) -> None:
        if self._daemon is not None:
            self._daemon.close()

    def _ask(self) -> None:
        """Ask the daemon for the state of the rest; keep its last answer while it cannot be asked."""
        self._ask_at = time.monotonic() + _LOOK_S
        try:
            answer = self._connect().request("where", session=self._session, limit_s=_ANSWER_S)
        except DaemonUnreachableError:
            self._drop_daemon()
        except WrongUseError:
            # It is not at work any more: what became of it, its journal says.
            self._how = CONTINUE
        except RelayError as error:
            self._notice, self._ask_at = error.sentence, time.monotonic() + _AGAIN_S
        else:
            leg = answer.get("leg")
            found = leg if isinstance(leg, str) else ""
            if not isinstance(answer.get("rest"), dict) or (found and found != self._leg):
                self._how = CONTINUE
            self._rest = RestStatus(answer, has_leg=bool(found))

    def _connect(self) -> "Connection":
        if self._daemon is None:
            self._daemon = self._reconnect()
            self._daemon.subscribe()
        return self._daemon

    def _drop_daemon(self) -> None:
        """Close the connection to a daemon that is gone; another one is found or started a moment later."""
        if self._daemon is not None:
            self._daemon.close()
        self._daemon = None
        self._ask_at = time.monotonic() + _AGAIN_S

    def _request(self, op: str, **fields: object) -> bool:
        """Send a request; return whether the daemon did it, and otherwise show why not."""
        self._notice = ""
        try:
            self._connect().request(op, session=self._session, limit_s=_ANSWER_S, **fields)
        except DaemonUnreachableError as error:
            self._drop_daemon()
            self._notice = f"{error.sentence}; press the key again"
            return False
        except RelayError as error:
            self._notice = f"{error.sentence}. {error.hint}" if error.hint else error.sentence
            return False
        self._ask_at = 0.0
        return True

    def _paint(self) -> None:
        rows, cols = self._terminal.cells()
        now = datetime.now(UTC)
        lines = list_lines(self._rest, now, chooses=self._chooses, notice=self._notice, kept=self._kept)
        shown = fit(lines, rows, cols)
        painted = (rows, cols, shown)
        if painted == self._painted:
            return
        clear = "\x1b[2J" if not self._painted or self._painted[:2] != (rows, cols) else ""
        known = self._painted[2] if self._painted else []
        if not clear and isinstance(known, list) and len(known) != len(shown):
            clear = "\x1b[2J"
        self._painted = painted
        first = rows + 1 - len(shown)
        body = "".join(f"\x1b[{first + at};1H\x1b[0m\x1b[2K{row}" for at, row in enumerate(shown))
        self._terminal.write((clear + body).encode("utf-8", "replace"))

    def _wait(self) -> None:
        """Wait for a key, a notice, a Unix signal, or the next second of the countdown."""
        poll = select.poll()
        poll.register(self._terminal.source, select.POLLIN)
        poll.register(self._signals.fd, select.POLLIN)
        if self._daemon is not None:
            poll.register(self._daemon.fileno(), select.POLLIN)
        for fd, _ in poll.poll(self._count_pause_s() * 1000):
            if fd == self._terminal.source:
                self._read_keys()
            elif fd == self._signals.fd:
                self._handle_signals(self._signals.take())
            else:
                self._read_notices()

    def _count_pause_s(self) -> float:
        """Return how long nothing changes by itself: up to the next whole second before the reset."""
        until_asked_s = max(0.0, self._ask_at - time.monotonic())
        if self._rest.until is None or self._rest.back:
            return until_asked_s
        left_s = (self._rest.until - datetime.now(UTC)).total_seconds()
        if left_s <= 0:
            return min(until_asked_s, _AGAIN_S)
        return min(until_asked_s, left_s % 1 + 0.01)

    def _read_notices(self) -> None:
        try:
            if self._daemon is not None:
                self._daemon.take_notices()
            self._ask_at = 0.0
        except DaemonUnreachableError:
            self._drop_daemon()

    def _handle_signals(self, seen: set[int]) -> None:
        if signal.SIGTSTP in seen:
            self._terminal.suspend()
        if seen & {signal.SIGTSTP, signal.SIGCONT}:
            self._terminal.enter()
            self._terminal.write(_ENTER)
            self._painted = ()

    def _read_keys(self) -> None:
        """Obey a key that came alone; more than one are a paste, or words that were meant for the agent."""
        data = _read(self._terminal.source)
        pause_s = _SPLIT_S if data == ESCAPE else ALONE_S
        if select.select([self._terminal.source], [], [], pause_s)[0]:
            data += _read(self._terminal.source)
        now = time.monotonic()
        was_pasting = self._input.in_paste
        self._input.push(data)
        units = []
        while (unit := self._input.take()) is not None:
            units.append(unit)
        self._types_on = self._types_on and now < self._ignore_keys_until
        if self._relay_key and units[:1] == [bytes((self._relay_key,))] and not was_pasting:
            return self._prompt(b"".join(units[1:]))
        if self._types_on:
            return self._keep(units, is_paste=was_pasting)
        if now < self._ignore_keys_until:
            self._ignore_keys_until = now + IGNORE_KEYS_S
        elif len(units) == 1 and len(units[0]) == 1 and not self._input.in_paste:
            return self._press(units[0].lower())
        if any(len(unit) == 1 for unit in units):
            self._refuse_key()
        return None

    def _keep(self, units: "Sequence[bytes]", *, is_paste: bool) -> None:
        """Keep the rest of a text that was begun before this screen appeared."""
        self._ignore_keys_until = time.monotonic() + IGNORE_KEYS_S
        for unit in units:
            is_pasted = is_paste or unit in (PASTE_BEGIN, PASTE_END)
            is_paste = unit == PASTE_BEGIN or (is_paste and unit != PASTE_END)
            is_text = unit >= b" " and unit not in _EDITS
            if is_pasted or is_text or (unit in _EDITS and (self._typed or self._held.get_kept())):
                self._typed.append(unit)
        self._kept.text = _read_text([*_split(self._held.get_kept()), *(self._typed if self.kept else ())])

    def _prompt(self, typed: bytes) -> None:
        """Show the relay prompt, as below an agent; `typed` was read right after the relay key."""
        prompt = LinePrompt(self._terminal, self._read_line_key, self._relay_key)
        line = prompt.ask(typed)
        if line == DETACH:
            self._how = LEFT
        elif isinstance(line, str):
            prompt.answer(line, self._on_relay_key, lambda: False)
        self._terminal.write(_ENTER)
        self._notice, self._painted, self._ask_at = "", (), 0.0
        self._ignore_keys_until = time.monotonic() + IGNORE_KEYS_S

    def _read_line_key(self, *, wait: bool, limit_s: float = 0.0) -> bytes | None:
        """Return what is typed next; `None` without `wait` if that is nothing within `limit_s`."""
        poll = select.poll()
        poll.register(self._terminal.source, select.POLLIN)
        poll.register(self._signals.fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(None if wait else limit_s * 1000)}
            if self._signals.fd in ready:
                self._handle_signals(self._signals.take())
            if self._terminal.source in ready:
                return _read(self._terminal.source)
            if not wait:
                return None

    def _refuse_key(self) -> None:
        """Ring for a key that chooses nothing; a person who types on types words, not choices."""
        self._terminal.write(_BELL)
        self._ignore_keys_until = time.monotonic() + IGNORE_KEYS_S

    def _press(self, key: bytes) -> None:
        rest, self._notice = self._rest, ""
        if self._chooses:
            self._choose(key)
        elif key in _LEAVE:
            self._how = LEFT
        elif key in _RETURN and rest.back:
            self._how = CONTINUE if self._request("rest.go") else ""
        elif key == b"w" and (rest.agreed or rest.can_agree):
            self._request("rest.agree", agreed=not rest.agreed)
        elif key == b"a" and rest.can_agree:
            self._agree_for_ever()
        elif key == b"n" and rest.others:
            self._chooses = True
        elif key in (b"v", ESCAPE) and rest.has_leg:
            self._how = SHOW_SCREEN
        elif key == b"k" and self._kept.text:
            self._kept.is_shown = not self._kept.is_shown
        elif key == b"d" and self._kept.text:
            self._held.drop_kept()
            self._typed, self._kept = [], KeptText()
        else:
            self._refuse_key()

    def _choose(self, key: bytes) -> None:
        """Let the agent whose number was pressed take over although it rests; Escape goes back."""
        others = self._rest.others
        at = int(key) - 1 if key.isdigit() else -1
        if 0 <= at < len(others):
            self._chooses = False
            self._how = CONTINUE if self._request("use", agent=others[at][0], yes=True) else ""
        elif key in (ESCAPE, b"\x03", b"n"):
            self._chooses = False
        else:
            self._refuse_key()

    def _agree_for_ever(self) -> None:
        try:
            self._agree_always()
        except RelayError as error:
            self._notice = f"{error.sentence}. {error.hint}" if error.hint else error.sentence
            return
        if self._request("rest.agree", agreed=True):
            self._notice = "Saved resume_at_reset = true in config.toml: work will continue at every reset."


def _split(keys: bytes) -> list[bytes]:
    """Return the keys one by one."""
    typed = PromptInput(_read_nothing)
    typed.push(keys)
    return list(iter(typed.take, None))


def _read_text(units: "Sequence[bytes]") -> str:
    """Return the text that these keys write, with a sign for each line end."""
    text = ""
    for unit in units:
        if unit in _ERASE:
            text = text[:-1]
        elif unit == b"\x15":
            text = ""
        elif unit == b"\x17":
            text = text[: text.rstrip().rfind(" ") + 1]
        elif unit >= b" " or unit in _RETURN:
            text += unit.decode("utf-8", "replace").replace("\r", "\n").replace("\n", "\u23ce")
    return text


def _read_nothing(*, wait: bool, limit_s: float = 0.0) -> bytes | None:
    """Return `None`: keys are pushed as they come, so there are never more to wait for."""
    del wait, limit_s
    return None


def _read(source: int) -> bytes:
    """Return what was typed. Raise SystemExit if the terminal is gone."""
    try:
        data = os.read(source, 4096)
    except OSError:
        data = b""
    if not data:
        raise SystemExit(128 + signal.SIGHUP)
    return data
