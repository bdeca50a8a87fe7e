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
                self._note(f"· {event.get('name', '')} {what}".rstrip())
            case "handoff":
                self._note(str(event.get("message", "")))
            case "handoff-failed":
                self._note(f"→ {event.get('why', '')}")
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
            self._note(str(event.get("message") or f"→ {why}"))
        elif outcome != "done":
            self._note(f"→ {agent} {'failed' if outcome == 'failed' else 'was stopped'}: {why}")
        self._note(f"→ Session {event.get('session')}. Its next turn: --continue {event.get('session')}")

    def _note(self, line: str) -> None:
        self._close()
        sys.stdout.flush()
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()

    def _close(self) -> None:
        if self._is_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open = False
