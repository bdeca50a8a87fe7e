"""Show the prompt at the bottom of the shell: keys, completion, history, and above it what waits."""

import json
import os
import select
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Protocol, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import open_regular, read_handle, write_atomic
from agent_relay.system.disk.locks import append_line, open_alone

_LIMIT_BYTES = 16 << 20
_KEPT_BYTES = 8 << 20
_MOST_ENTRIES = 2000
_LONGEST = 20_000


class TypedHistory(History):
    """The entries of the file at `path`, mode 0600; `redact` is applied to what is written there."""

    def __init__(self, path: str, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._path = path
        self._redact = redact

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries, the newest first; skip lines that are no entries."""
        try:
            lines, is_whole = _read_newest(self._path)
            if len(lines) > 2 * _MOST_ENTRIES or not is_whole:
                lines = _shorten_file(self._path)
        except (OSError, RelayError):
            return []
        entries = [_parse(line) for line in reversed(lines)]
        return [entry for entry in entries if entry]

    def store_string(self, string: str) -> None:
        """Append the entry to the file, unless it is too long or the file cannot be written."""
        if len(string) > _LONGEST:
            return
        with suppress(RelayError):
            append_line(self._path, json.dumps(self._redact(string)).encode())


def _read_newest(path: str) -> tuple[list[bytes], bool]:
    """Return the newest lines of the file, and whether they are all. Raise OSError or RelayError."""
    handle = open_regular(path)
    try:
        size = os.fstat(handle).st_size
        begin = max(0, size - _KEPT_BYTES) if size > _LIMIT_BYTES else 0
        data = read_handle(handle, path, limit_bytes=begin + _LIMIT_BYTES, begin=begin)
    finally:
        os.close(handle)
    return data.split(b"\n"), begin == 0


def _shorten_file(path: str) -> list[bytes]:
    """Cut the file to its newest lines and return them; what another shell adds meanwhile comes after them.

    Raises OSError or RelayError if the file cannot be read.
    """
    handle = open_alone(path)
    try:
        lines = _read_newest(path)[0][-_MOST_ENTRIES:]
        with suppress(RelayError):
            write_atomic(path, b"\n".join(lines), durable=False)
        return lines
    finally:
        os.close(handle)


def _parse(line: bytes) -> str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


_SHOWN_WAITING = 3
_LONGEST_WAITING = 60


class PromptOwner(Protocol):
    """Supplies what the prompt shows, and handles its keys."""

    def list_waiting(self) -> list[str]:
        """Return the messages that wait."""
        ...

    def render_status(self, width: int) -> str:
        """Return the line above the prompt."""
        ...

    def interrupt(self) -> None:
        """Handle Ctrl-C on an empty line, or Escape while an agent works."""
        ...

    def take_back(self) -> str:
        """Return the newest waiting message, to be edited, and remove it from the queue."""
        ...

    def is_working(self) -> bool:
        """Return whether an agent works."""
        ...


class PromptSuspendedError(Exception):
    """The prompt was closed for a moment, because something else needs the terminal."""


class ShellPrompt:
    """Asks for one message after the other; what is printed meanwhile appears above."""

    def __init__(
        self,
        behind: PromptOwner,
        *,
        history: History,
        completer: Completer,
        output: Output | None = None,
        source: Input | None = None,
    ) -> None:
        self._behind = behind
        self._kept = ""
        self._drawn: tuple[int, AnyFormattedText] = (-1, "")
        self._session: PromptSession[str] = PromptSession(
            message=self._render,
            multiline=True,
            history=history,
            completer=completer,
            complete_while_typing=Condition(self._completes),
            complete_in_thread=True,
            key_bindings=_bind(behind, lambda: self._session.default_buffer.text),
            prompt_continuation="  ",
            erase_when_done=True,
            enable_suspend=True,
            reserve_space_for_menu=5,
            output=output,
            input=source,
        )

    @property
    def app(self) -> Application[str]:
        """The application, which `invalidate` redraws and `exit` leaves."""
        return self._session.app

    async def ask(self) -> str:
        """Return the next message or command.

        Raises EOFError if the person leaves, PromptSuspendedError after `give_way`.
        """
        kept, self._kept = self._kept, ""
        return await self._session.prompt_async(default=kept, handle_sigint=False)

    def give_way(self) -> None:
        """End a waiting `ask` at once; the next one begins with what is half typed."""
        if self.app.is_running and not self.app.is_done:
            self._kept = self._session.default_buffer.text
            self.app.exit(exception=PromptSuspendedError)

    def _completes(self) -> bool:
        """Return whether the text is completed without Tab: a command or a path, but no prose."""
        before = self._session.default_buffer.document.text_before_cursor
        return before.startswith("/") or before.rpartition(" ")[2].startswith("@")

    def _render(self) -> AnyFormattedText:
        # Asked for once a row: a paste of one line has thousands of them.
        drawn = self.app.render_counter
        if self._drawn[0] != drawn:
            self._drawn = (drawn, self._build_text())
        return self._drawn[1]

    def _build_text(self) -> AnyFormattedText:
        width = self.app.output.get_size().columns
        waiting = self._behind.list_waiting()
        lines = [f"  waits: {_shorten(message)}" for message in waiting[:_SHOWN_WAITING]]
        if len(waiting) > _SHOWN_WAITING:
            lines.append(f"  … and {len(waiting) - _SHOWN_WAITING} more")
        above = "".join(f"{line[: width - 1]}\n" for line in lines)
        return [
            ("class:waiting fg:ansibrightblack", above),
            ("class:status fg:ansibrightblack", f"{self._behind.render_status(width)}\n"),
            ("class:prompt bold", "> "),
        ]


def _shorten(message: str) -> str:
    # Its beginning is all that is shown; a paste may have megabytes, and this is drawn at every key.
    text = " ".join(message[: 4 * _LONGEST_WAITING].split())
    is_whole = len(message) <= 4 * _LONGEST_WAITING and len(text) <= _LONGEST_WAITING
    return text if is_whole else f"{text[:_LONGEST_WAITING]}…"


def _complete(buffer: Buffer) -> None:
    # The only one is taken at once, also where the menu has not been drawn yet.
    asked = CompleteEvent(completion_requested=True)
    found = list(islice(buffer.completer.get_completions(buffer.document, asked), 2))
    if len(found) == 1:
        buffer.apply_completion(found[0])
    elif buffer.complete_state is not None:
        buffer.complete_next()
    else:
        buffer.start_completion(insert_common_part=True)


def _bind(behind: PromptOwner, read: Callable[[], str]) -> KeyBindings:
    keys = KeyBindings()
    is_empty = Condition(lambda: not read())
    waits = Condition(lambda: bool(behind.list_waiting()))
    works = Condition(behind.is_working)
    # What searches the history has keys of its own.
    at_prompt = ~is_searching

    @keys.add("enter", filter=at_prompt)
    def _send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("c-j", filter=at_prompt)
    @keys.add("escape", "enter", filter=at_prompt)
    def _add_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("tab", filter=at_prompt)
    def _tab(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    @keys.add("up", filter=is_empty & waits & at_prompt)
    def _take_back(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(behind.take_back())

    @keys.add("c-c", filter=is_empty & at_prompt)
    @keys.add("escape", filter=is_empty & works & at_prompt)
    def _interrupt(_event: KeyPressEvent) -> None:
        behind.interrupt()

    @keys.add("c-c", filter=~is_empty & at_prompt)
    def _clear(event: KeyPressEvent) -> None:
        # Not lost: it is what the key for earlier entries brings back.
        event.current_buffer.append_to_history()
        event.current_buffer.reset()

    return keys


_MUCH = 64
"""Characters that are more than anybody types between two reads of the terminal."""
_MOST = 4 << 20
_PAUSE_S = 0.01
"""Longest wait for the next piece of what a terminal is sending, in seconds."""
_BLANKS = {Keys.ControlJ: "\n", Keys.ControlI: "\t"}


class PastingInput(Vt100Input):
    """A terminal that may not bracket its pastes: old ones, and programs that drive this one, do not.

    Its next `ahead` bytes were typed while it was not the shell's: before its start, or while it was lent.
    """

    def __init__(self, stdin: TextIO, *, ahead: int = 0) -> None:
        super().__init__(stdin)
        self.ahead = ahead

    def read_keys(self) -> list[KeyPress]:
        """Return the keys that have come; of a paste all of it, so that it is inserted and drawn once."""
        if self.ahead:
            typed = os.read(self.fileno(), self.ahead).decode("utf-8", "replace")
            self.ahead = 0
            self.vt100_parser.feed(typed.replace("\n", "\r").replace("\0", "\x04"))
        keys = super().read_keys()
        newest = len(keys)
        while newest >= _MUCH and len(keys) < _MOST and self._has_more():
            more = super().read_keys()
            newest = len(more)
            keys += more
        return list(gather_text(keys))

    def _has_more(self) -> bool:
        return not self.closed and bool(select.select([self.fileno()], [], [], _PAUSE_S)[0])


def gather_text(keys: Iterable[KeyPress]) -> Iterator[KeyPress]:
    """Yield the keys, long runs of characters as one paste each; Enter and every other key are unchanged."""
    run: list[KeyPress] = []
    for key in keys:
        if _read(key):
            run.append(key)
            continue
        yield from _join(run)
        run = []
        yield key
    yield from _join(run)


def _join(run: list[KeyPress]) -> list[KeyPress]:
    if len(run) < _MUCH:
        return run
    return [KeyPress(Keys.BracketedPaste, "".join(map(_read, run)))]


def _read(key: KeyPress) -> str:
    """Return the character a key stands for in a paste; empty for none."""
    return _BLANKS.get(key.key, "") if isinstance(key.key, Keys) else key.key
