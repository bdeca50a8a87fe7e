"""A turn's view whose writes are kept, for tests."""

from collections.abc import Mapping

from agent_relay.faces.render.turn_view import TurnView


class Written:
    """What a view wrote, call by call."""

    def __init__(self, *, columns: int = 80, is_colour: bool = False) -> None:
        self.writes: list[str] = []
        self.view = TurnView(self.writes.append, columns=lambda: columns, is_colour=is_colour)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.writes)


def show(*events: Mapping[str, object], columns: int = 80, is_colour: bool = False) -> str:
    """What the events look like."""
    written = Written(columns=columns, is_colour=is_colour)
    for event in events:
        written.view.show(event)
    written.view.end()
    return written.text


def say(text: str, *, more: bool = False) -> dict[str, object]:
    """The agent's words as an event."""
    return {"type": "text", "leg": "L1", "agent": "ann", "text": text, "more": more}


def call(name: str, given: str, number: str = "c1", about: str = "") -> dict[str, object]:
    """A tool's use as an event."""
    return {"type": "tool", "name": name, "call": number, "input": given, "about": about}


def answer(output: str, number: str = "c1", *, is_error: bool = False) -> dict[str, object]:
    """What came of it."""
    return {"type": "result", "call": number, "output": output, "is_error": is_error}
