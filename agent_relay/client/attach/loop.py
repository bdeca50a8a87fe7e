"""Connect a person's terminal to one leg until the agent ends, the person leaves, or either is gone."""

import _socket
import os
import select
import signal
import struct
import time

from agent_relay.client.attach._stream import READ_BYTES, Stream
from agent_relay.client.attach.prompt import DETACH, LinePrompt, PromptExit
from agent_relay.client.attach.tty import (
    LONGEST_S,
    SHORTEST_S,
    Signals,
    UserTerminal,
    erase_rows,
    render_line,
    split_line,
)
from agent_relay.domain.errors import RelayError
from agent_relay.system.net.unix_sockets import connect
from agent_relay.terminal.holder.wire import FrameError, FrameReader, render_frame
from agent_relay.terminal.notification import find_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.client.attach.prompt import Command

_ANSWER_S = 10.0
_DONE_S = 1.0


class AttachOutcome:
    """The end of an attachment.

    `why` is `ended` (the agent did, with `status` as a shell reports it), `detached` (by the person or the
    daemon; the agent goes on), `resting` (every agent rests, and the resting screen comes next) or `lost`
    (the holder is gone without a message; `status` is -1). `held` is what was typed and the agent was not
    given, `line` the keys that retype its half-typed input line, `bar` the texts of the bar that the terminal
    shows, if any. `is_abrupt` is true if the agent had no chance to tidy up its screen, `is_private` if what
    is being typed must reach no other agent: this one has never shown an input line.
    """

    def __init__(self, why: str, status: int = -1, *, is_abrupt: bool = False) -> None:
        self.why = why
        self.status = status
        self.is_abrupt = is_abrupt
        self.is_private = False
        self.held = self.line = b""
        self.bar: list[str] = []


def attach(
    socket_path: str,
    *,
    relay_key: int,
    on_relay_key: "Command",
    terminal: UserTerminal | None = None,
    line: str = "",
    held: bytes = b"",
    keep: bool = False,
    hold_back: "Callable[[], str] | None" = None,
) -> AttachOutcome:
    """Connect standard input and output to the leg; return how that ended.

    The terminal is restored on every way out. `relay_key` is a control byte, 0 for none. `on_relay_key` gets
    each line typed behind it, except `/detach`, and returns lines to show, none to go back at once, or a
    PendingAnswer; a RelayError is shown. `terminal` is given by callers who hold it over several legs; `line`
    is shown over the agent's screen for a while. `held` is what was typed before, and is sent first; with
    `keep`, the terminal's contents stay until the agent paints. `hold_back` is called when the person presses
    Escape below a bar; it returns what to show. Raises RelayError if no holder listens or it refuses,
    SystemExit with 128 + number on SIGTERM, SIGHUP, SIGINT and SIGQUIT, or when the terminal is gone.
    """
    try:
        sock = connect(socket_path, timeout_s=_ANSWER_S)
    except OSError as error:
        raise RelayError(f"the agent cannot be reached: {error}", hint="See: agent-relay status") from error
    fields: dict[str, object] = {"held": held.decode("latin-1"), "keep": keep}
    with Signals() as signals:
        if terminal is not None:
            found = _Attachment(sock, terminal, signals, relay_key, hold_back)
            return found.run(on_relay_key, line, fields)
        with UserTerminal() as own:
            found = _Attachment(sock, own, signals, relay_key, hold_back)
            return found.run(on_relay_key, line, fields)


class _Attachment:
    def __init__(
        self,
        sock: _socket.socket,
        terminal: UserTerminal,
        signals: Signals,
        relay_key: int,
        hold_back: "Callable[[], str] | None",
    ) -> None:
        self._hold_back = hold_back
        self._sock = sock
        self._terminal = terminal
        self._signals = signals
        self._key = relay_key if terminal.is_tty else 0
        self._frames = FrameReader()
        self._events: list[dict[str, object]] = []
        self._stream: Stream | None = None
        self._outcome: AttachOutcome | None = None
        self._prompting = False
        self._said_meanwhile: list[dict[str, object]] = []
        self._typed = False
        self._lost = False

    def run(self, on_relay_key: "Command", line: str, fields: dict[str, object]) -> AttachOutcome:
        try:
            self._begin(fields)
            if line:
                self._show_message(line)
            while self._outcome is None:
                self._wait(keys=False)
                for event in self._take_events():
                    self._handle_event(event, on_relay_key)
            return self._outcome
        finally:
            # Only when the holder has let go does nothing come after the terminal's restoration.
            self._ask("detach")
            self._take_held()
            if self._stream is not None:
                self._stream.finish()
            self._sock.close()

    def _take_held(self) -> None:
        """Add to the outcome what was typed and not given to the agent: first what the holder had of it."""
        for event in self._events:
            if self._outcome is not None and event["event"] == "detached":
                _fill(self._outcome, event)
        if self._outcome is not None and self._stream is not None and self._outcome.bar:
            self._outcome.held += self._stream.take_waiting()

    def _begin(self, fields: dict[str, object]) -> None:
        if self._terminal.is_single:
            answer = self._request_attach(self._terminal.source, fields)
            if answer.get("ok"):
                return
            if answer.get("code") != "tty-refused":
                raise RelayError(f"the agent cannot be attached: {answer.get('error')}")
        self._stream = Stream(self._terminal.source, self._terminal.target)
        answer = self._request_attach(self._stream.passed.fileno(), fields)
        self._stream.passed.close()
        if not answer.get("ok"):
            raise RelayError(f"the agent cannot be attached: {answer.get('error')}")

    def _request_attach(self, fd: int, fields: dict[str, object]) -> dict[str, object]:
        request = {
            "op": "attach",
            "relay_key": self._key,
            "modes": self._terminal.line_modes(),
            "form": find_form(os.environ) if self._terminal.is_tty else "",
            **self._size(),
            **fields,
        }
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", fd))
        deadline = time.monotonic() + _ANSWER_S
        try:
            self._sock.sendmsg([render_frame(request)], [rights])
            while time.monotonic() < deadline and (data := self._sock.recv(READ_BYTES)):
                messages = self._frames.feed(data)
                self._events += [message for message in messages if "event" in message]
                for message in messages:
                    if "event" not in message:
                        return message
        except (OSError, FrameError) as error:
            raise RelayError(f"the agent cannot be attached: {error}") from error
        raise RelayError("the agent's holder does not answer", hint="See: agent-relay status")

    def _size(self) -> dict[str, object]:
        size = self._terminal.size()
        return {} if size is None else dict(zip(("rows", "cols", "width_px", "height_px"), size, strict=True))

    def _send(self, op: str, **fields: object) -> None:
        try:
            self._sock.sendall(render_frame({"op": op, **fields}))
        except OSError:
            return

    def _ask(self, op: str) -> dict[str, object]:
        """Send a request and return its answer, empty without one; keep events that come meanwhile."""
        self._send(op, id=op)
        deadline = time.monotonic() + _DONE_S
        poll = select.poll()
        poll.register(self._sock.fileno(), select.POLLIN)
        while (left_s := deadline - time.monotonic()) > 0 and poll.poll(left_s * 1000):
            for answer in self._receive():
                if answer.get("id") == op:
                    return answer
            if self._lost:
                break
        return {}

    def _wait(self, *, keys: bool, limit_s: float | None = None) -> bool:
        """Wait for anything and handle it, except events and `keys`; return whether keys are ready."""
        poll = select.poll()
        poll.register(self._sock.fileno(), select.POLLIN)
        poll.register(self._signals.fd, select.POLLIN)
        if self._stream is not None:
            self._stream.register(poll)
        if keys:
            poll.register(self._terminal.source, select.POLLIN)
        typed = False
        limit_ms = None if limit_s is None else limit_s * 1000
        for fd, ready in poll.poll(0 if self._events else limit_ms):
            if fd == self._sock.fileno():
                self._receive()
            elif fd == self._signals.fd:
                self._handle_signals(self._signals.take())
            elif keys and fd == self._terminal.source:
                typed = True
            elif self._stream is not None:
                self._stream.serve(fd, ready)
        return typed

    def _receive(self) -> list[dict[str, object]]:
        """Keep the events that came; return the answers that came."""
        messages: list[dict[str, object]] = []
        try:
            data = self._sock.recv(READ_BYTES)
            messages = self._frames.feed(data)
        except (OSError, FrameError):
            data = b""
        events = [message for message in messages if "event" in message]
        # What relay says waits for the end of a line the person is typing to it.
        later = [event for event in events if self._prompting and event["event"] == "say"]
        self._said_meanwhile += later
        self._typed = self._typed or any(event["event"] == "typed" for event in events)
        self._events += [event for event in events if event not in later and event["event"] != "typed"]
        if not data:
            self._lost = True
            self._events.append({"event": "lost"})
        return [message for message in messages if "event" not in message]

    def _handle_signals(self, seen: set[int]) -> None:
        if signal.SIGTSTP in seen:
            self._ask("pause")
            self._terminal.suspend()
        if seen & {signal.SIGTSTP, signal.SIGCONT}:
            self._terminal.enter()
            if not self._prompting:
                self._send("resume")
        if size := self._size():
            self._send("resize", **size)

    def _take_events(self) -> list[dict[str, object]]:
        events, self._events = self._events, []
        return events

    def _handle_event(self, event: dict[str, object], on_relay_key: "Command") -> None:
        kind = event["event"]
        if kind == "exit":
            status = event.get("status")
            known = status if isinstance(status, int) else -1
            self._outcome = AttachOutcome("ended", known, is_abrupt=bool(event.get("signal")))
            _fill(self._outcome, event)
        elif kind in ("detached", "lost"):
            self._outcome = self._outcome or AttachOutcome(str(kind), is_abrupt=True)
            _fill(self._outcome, event)
        elif kind == "terminal-gone":
            if self._stream is None or self._terminal.is_tty:
                raise SystemExit(128 + signal.SIGHUP)
            self._outcome = self._outcome or AttachOutcome("lost")
        elif kind == "say" and event.get("kind") == "rest" and self._terminal.is_tty:
            self._outcome = AttachOutcome("resting", is_abrupt=True)
            self._outcome.is_private = event.get("line") == "hidden"
        elif kind == "say":
            # Loaded where something is said: attaching must not pay for it.
            from agent_relay.domain.names import name_relay_key
            from agent_relay.domain.text.hints import render_over_screen

            key = name_relay_key(self._key)
            self._show_message(render_over_screen(str(event.get("text", "")), key=key))
        elif kind == "hold-back" and self._hold_back is not None:
            if text := self._hold_back():
                self._show_message(text, below=1)
        elif kind == "relay-key":
            self._prompt(str(event.get("rest", "")).encode("latin-1"), on_relay_key)

    def _prompt(self, typed: bytes, on_relay_key: "Command") -> None:
        if self._stream is not None:
            # What was typed meanwhile is on its way to the holder: it is given back.
            typed += str(self._ask("pause").get("rest", "")).encode("latin-1") + self._stream.hold()
        self._prompting = True
        prompt = LinePrompt(self._terminal, self._read_key, self._key)
        line = prompt.ask(typed)
        if line == DETACH:
            self._outcome = AttachOutcome("detached")
            return
        if isinstance(line, str):
            prompt.answer(line, on_relay_key, lambda: bool(self._events))
        self._give_back(relay_key=isinstance(line, PromptExit) and line.key, typed=prompt.left)

    def _show_message(self, text: str, *, below: int = 0) -> None:
        """Show a message; keys typed meanwhile go to the agent, and end the message once it could be read.

        The `below` bottom rows stay as they are: those of the bar, if there is one.
        """
        if not self._terminal.is_tty or not self._ask("cover").get("ok"):
            return
        self._prompting, self._typed = True, False
        if self._stream is not None:
            self._stream.covered = True
        rows, cols = self._terminal.cells()
        self._terminal.write(render_line(text, max(1, rows - below), cols))
        began = time.monotonic()
        while not self._events:
            left_s = began + (SHORTEST_S if self._typed else LONGEST_S) - time.monotonic()
            if left_s <= 0:
                break
            self._wait(keys=False, limit_s=left_s)
        if self._stream is not None:
            self._stream.covered = False
        if any(event["event"] == "relay-key" for event in self._events):
            # The prompt it opens gives the terminal back itself, but not if the person detaches there.
            count = len(split_line(text, max(1, rows - below), cols))
            self._terminal.write(erase_rows(count, max(1, rows - below)))
        else:
            self._give_back()

    def _give_back(self, *, relay_key: bool = False, typed: bytes = b"") -> None:
        """Give the terminal back to the agent, with what was `typed`."""
        self._prompting = False
        self._events += self._said_meanwhile
        self._said_meanwhile = []
        if self._stream is not None:
            self._stream.held = False
        self._send("resume", relay_key=relay_key, typed=typed.decode("latin-1"))

    def _read_key(self, *, wait: bool, limit_s: float = 0.0) -> bytes | None:
        """Return the next bytes typed; `None` if events are to be handled, or nothing came in `limit_s`."""
        while not self._events:
            if self._wait(keys=True, limit_s=None if wait else limit_s):
                try:
                    data = os.read(self._terminal.source, READ_BYTES)
                except OSError:
                    data = b""
                if not data:
                    raise SystemExit(128 + signal.SIGHUP)
                return data
            if not wait:
                break
        return None


def _fill(outcome: AttachOutcome, event: dict[str, object]) -> None:
    """Copy the holder's report about a released terminal into the outcome; older holders send none."""
    held, line, bar = event.get("held"), event.get("line"), event.get("bar")
    if isinstance(held, str) and held:
        outcome.held = held.encode("latin-1", "replace")
    if isinstance(line, str):
        outcome.line = line.encode("latin-1", "replace")
    if isinstance(bar, list):
        outcome.bar = [text for text in bar if isinstance(text, str)]
