"""A headless turn for people: the agent's words on standard output, relay's on standard error."""

import sys
from collections.abc import Mapping

from agent_relay.faces.cli.printing import plain
from agent_relay.logic.plain import clean_text

_TOOL_LENGTH = 100


class Plain:
    """Shows one turn's events; a message that came in pieces is put together."""

    def __init__(self) -> None:
        self._is_open = False

    def show(self, event: Mapping[str, object]) -> None:
        """What the event is to a person; most are nothing."""
        if event.get("type") == "text":
            self._say(clean_text(str(event.get("text", ""))), more=event.get("more") is True)
            return
        match event.get("type"):
            case "tool" if sys.stderr.isatty():
                what = " ".join(str(event.get("input", "")).split())[:_TOOL_LENGTH]
                self.note(f"· {event.get('name', '')} {what}".rstrip())
            case "handoff":
                self.note(str(event.get("message", "")))
            case "handoff-failed":
                self.note(f"→ {event.get('why', '')}")
            case "end":
                self._end(event)
            case _:
                self._close()

    def _say(self, text: str, *, more: bool) -> None:
        if not text:
            return
        sys.stdout.write(text)
        self._is_open = not text.endswith("\n")
        if not more:
            self._close()
        sys.stdout.flush()

    def _end(self, event: Mapping[str, object]) -> None:
        outcome, agent = event.get("outcome"), event.get("agent")
        why = event.get("why") or "it does not say why"
        if outcome == "resting":
            self.note(str(event.get("message") or f"→ {why}"))
        elif outcome != "done":
            self.note(f"→ {agent} {'failed' if outcome == 'failed' else 'was stopped'}: {why}")
        self.take_leave(event)

    def take_leave(self, event: Mapping[str, object]) -> None:
        """What is said at the very end."""
        self.note(f"→ Session {event.get('session')}. Its next turn: --continue {event.get('session')}")

    def note(self, line: str) -> None:
        """A line of relay's own."""
        self._close()
        sys.stdout.flush()
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()

    def _close(self) -> None:
        if self._is_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open = False


class ChatPlain(Plain):
    """A chat: who speaks stands above their words, as in a Markdown document."""

    def __init__(self) -> None:
        super().__init__()
        self._speaker = self._before = ""

    def show(self, event: Mapping[str, object]) -> None:
        """What the event is to a person; most are nothing."""
        match event.get("type"):
            case "next":
                self._speaker = ""
                owner, speaker = event.get("agent"), event.get("speaker")
                if owner != speaker:
                    self.note(f"→ {owner} rests; {speaker} takes its place.")
            case "text" if event.get("agent") != self._speaker:
                self._speaker = str(event.get("agent"))
                super().show({"type": "text", "text": f"{self._before}## {self._speaker}\n\n"})
                self._before = "\n"
                super().show(event)
            case "chat-end":
                self.note(str(event.get("message", "")))
                self.note(f"→ Session {event.get('session')}. Go on: chat --continue {event.get('session')}")
            case _:
                super().show(event)

    def take_leave(self, event: Mapping[str, object]) -> None:
        """Nothing: the next turn follows, or the end of the chat says it."""
