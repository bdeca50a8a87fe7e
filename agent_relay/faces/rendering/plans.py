"""An agent's plan as a list to tick off."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent_relay.faces.rendering.ink import Ink, Style, cut_line, join_line

_MOST_STEPS = 200
_MARKS: dict[str, tuple[str, Style]] = {
    "done": ("✔", "green"),
    "doing": ("▸", "bold"),
    "dropped": ("✗", "dim"),
}
_PENDING: tuple[str, Style] = ("○", "dim")


@dataclass(frozen=True, slots=True)
class _Step:
    text: str
    status: str


class Plan:
    """The plan so far; what an event changed of it is shown."""

    def __init__(self) -> None:
        self._steps: dict[str, _Step] = {}

    def take(self, event: Mapping[str, object], ink: Ink, columns: int) -> list[str]:
        """The lines of what is new: a whole plan as a whole, else the steps that changed."""
        before = dict(self._steps)
        if event.get("whole") is True:
            self._steps = {}
        steps = event.get("steps")
        for number, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict) and len(self._steps) < _MOST_STEPS:
                self._set(str(step.get("id") or f"#{number}"), step)
        if event.get("whole") is True and self._steps != before:
            return [_render(step, ink, columns) for step in self._steps.values()]
        return [_render(step, ink, columns) for key, step in self._steps.items() if step != before.get(key)]

    def _set(self, key: str, step: Mapping[str, object]) -> None:
        old = self._steps.get(key, _Step("", "pending"))
        text = join_line(str(step.get("text") or "")) or old.text or join_line(key)
        self._steps[key] = _Step(text, str(step.get("status") or "") or old.status)


def _render(step: _Step, ink: Ink, columns: int) -> str:
    mark, style = _MARKS.get(step.status, _PENDING)
    return ink.paint(style, f"  {mark} {cut_line(step.text, columns - 4)}")
