"""Print a headless turn for people: laid out on a terminal, else the agent's words as they are."""

import shutil
import sys
from collections.abc import Mapping

from agent_relay.domain.text.plain import clean_text
from agent_relay.faces.render._event_lines import describe_call, find_note
from agent_relay.faces.render.output import is_fancy, plain
from agent_relay.system.disk.folders import get_cwd

_TOOL_LENGTH = 100
_WORDS = frozenset(("text", "thought", "tool", "edit", "plan"))
"""Kinds of what an agent says or does: its name is printed before them."""


class PlainTurnPrinter:
    """Prints one turn's events; a message that came in pieces is put together.

    The agent's words go to standard output, relay's own to standard error.
    """

    def __init__(self) -> None:
        self._is_open = False

    def show(self, event: Mapping[str, object]) -> None:
        """Print what the event means to a person; most events print nothing."""
        match event.get("type"):
            case "text":
                self._say(clean_text(str(event.get("text", ""))), more=event.get("more") is True)
            case "tool" if sys.stderr.isatty():
                what = describe_call(str(event.get("name", "")), str(event.get("input", "")), _TOOL_LENGTH)
                self.note(f"· {what}")
            case _:
                self.close()
                self.note(find_note(event))
                if event.get("type") == "end":
                    self.take_leave(event)

    def _say(self, text: str, *, more: bool) -> None:
        if not text:
            return
        sys.stdout.write(text)
        self._is_open = not text.endswith("\n")
        if not more:
            self.close()
        sys.stdout.flush()

    def take_leave(self, event: Mapping[str, object]) -> None:
        """Print what follows the turn: the session, and how to continue it."""
        self.note(_name_session(event))

    def note(self, line: str) -> None:
        """Print a line of relay's own, unless it is empty."""
        if line:
            self.close()
            sys.stdout.flush()
            sys.stderr.write(f"{plain(line)}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """End a line that is still open."""
        if self._is_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open = False


class PlainChatPrinter(PlainTurnPrinter):
    """Prints a chat: the speaker's name is a heading above their words, as in a Markdown document."""

    def __init__(self) -> None:
        super().__init__()
        self._speaker = self._before = ""

    def show(self, event: Mapping[str, object]) -> None:
        """Print what the event means to a person; most events print nothing."""
        match event.get("type"):
            case "next":
                self._speaker = ""
                self.note(describe_seat(event))
            case "text" if event.get("agent") != self._speaker:
                self._speaker = str(event.get("agent"))
                super().show({"type": "text", "text": f"{self._before}## {self._speaker}\n\n"})
                self._before = "\n"
                super().show(event)
            case "turn":
                # Who speaks for whom was said with the place.
                self.close()
            case "chat-end":
                for line in describe_chat_end(event):
                    self.note(line)
            case _:
                super().show(event)

    def take_leave(self, event: Mapping[str, object]) -> None:
        """Print nothing: the next turn follows, or the end of the chat names the session."""


class StyledTurnPrinter:
    """Shows one turn on a terminal as the relay shell does."""

    def __init__(self) -> None:
        from agent_relay.faces.render.turn_view import OUTPUT_WRITE_CHARS, TurnView

        self._view = TurnView(
            _write, columns=_measure, is_colour=is_fancy(), folder=get_cwd(), most=OUTPUT_WRITE_CHARS
        )

    def show(self, event: Mapping[str, object]) -> None:
        """Queue the event for the terminal; after the turn's last one, paint all that is queued."""
        self._view.show(event)
        if event.get("type") == "end":
            self._view.end()
            _write(f"{_name_session(event)}\n")

    def close(self) -> None:
        """Paint all that is queued."""
        self._view.end()


class StyledChatPrinter(StyledTurnPrinter):
    """Shows a chat on a terminal: each turn begins with its speaker, and is laid out like any other."""

    def __init__(self) -> None:
        super().__init__()
        self._speaker = ""

    def show(self, event: Mapping[str, object]) -> None:
        """Queue the event for the terminal; after a turn's last one, paint all that is queued."""
        match event.get("type"):
            case "next":
                self._speaker = ""
                line = describe_seat(event)
                if line:
                    _write(f"{plain(line)}\n")
            case "chat-end":
                _write("".join(f"{plain(line)}\n" for line in describe_chat_end(event)))
            case "end":
                self._view.show(event)
                self._view.end()
            case kind:
                speaker = str(event.get("agent", ""))
                if kind in _WORDS and speaker != self._speaker:
                    self._speaker = speaker
                    self._view.begin(speaker, "")
                self._view.show(event)


def choose_chat_printer() -> PlainChatPrinter | StyledChatPrinter:
    """Return the printer that lays the chat out if all output goes to terminals, else the plain one."""
    return StyledChatPrinter() if _is_seen() else PlainChatPrinter()


def choose_turn_printer() -> PlainTurnPrinter | StyledTurnPrinter:
    """Return the printer that lays the turn out if all output goes to terminals, else the plain one."""
    return StyledTurnPrinter() if _is_seen() else PlainTurnPrinter()


def _is_seen() -> bool:
    return sys.stdout.isatty() and sys.stderr.isatty()


def describe_seat(event: Mapping[str, object]) -> str:
    """Return a line that says which agent takes the place of one that rests; empty if none rests."""
    owner, speaker = event.get("agent"), event.get("speaker")
    return f"→ {owner} rests; {speaker} takes its place." if owner != speaker else ""


def describe_chat_end(event: Mapping[str, object]) -> tuple[str, str]:
    """Return how the chat ended, and how to continue it."""
    session = event.get("session")
    return str(event.get("message", "")), f"→ Session {session}. Go on: agent-relay chat --continue {session}"


def _name_session(event: Mapping[str, object]) -> str:
    session, agent = event.get("session"), event.get("agent")
    return f"→ Session {session}. Its next turn: agent-relay run {agent} --continue {session} TASK"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _measure() -> int:
    return shutil.get_terminal_size().columns
