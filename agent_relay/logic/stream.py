"""A headless agent's standard output: what its records say, and whether its turn came to a good end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent_relay.domain.run_event import PlanStep
from agent_relay.domain.saying import Meaning, Saying
from agent_relay.logic.changes import read_change
from agent_relay.logic.detector.records import find_text, find_value, is_meant
from agent_relay.logic.lengths import LONGEST_RESULT
from agent_relay.logic.plain import clean_text

_MOST_COST = 1e9
_MOST_TOKENS = 1 << 53
"""Above it JSON's readers disagree about whole numbers."""
_MOST_STEPS = 100
_LONGEST_STEP = 500
_STATUSES: dict[str, Literal["pending", "doing", "done", "dropped"]] = {
    "pending": "pending",
    "False": "pending",
    "in_progress": "doing",
    "completed": "done",
    "done": "done",
    "True": "done",
    "cancelled": "dropped",
    "deleted": "dropped",
}
"""What agents call how a step stands, or whether it is completed."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one record says. `tokens` by kind; `cost` in US dollars, `None` where the agent does not say.

    An edit's `name` is its file and its `text` the diff.
    """

    means: Meaning
    text: str = ""
    name: str = ""
    call: str = ""
    is_failure: bool = False
    is_piece: bool = False
    about: Literal["", "plan"] = ""
    steps: tuple[PlanStep, ...] = ()
    is_whole: bool = False
    tokens: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None


def read_record(sayings: Sequence[Saying], record: Mapping[str, object]) -> Iterator[Said]:
    """Everything the record says, in the order of `sayings`."""
    for saying in sayings:
        if is_meant(saying.where, record):
            for part in _list_parts(saying, record):
                if is_meant(saying.of, part):
                    yield _read(saying, part)


class Verdict:
    """How a turn went, by the records heard so far: `is_done`, or `has_failed` and `why`, if it is told."""

    def __init__(self, sayings: Sequence[Saying]) -> None:
        self._sayings = [saying for saying in sayings if saying.means in {"done", "failed"}]
        self.is_done = self.has_failed = False
        self.why = ""

    def hear(self, record: Mapping[str, object]) -> None:
        """One more record; a failure stands, whatever is said after it."""
        for said in read_record(self._sayings, record):
            if said.means == "failed":
                self.is_done, self.has_failed = False, True
                self.why = _join(said.text) or self.why
            elif not self.has_failed:
                self.is_done = True


def find_last_line(errors: str) -> str:
    """The last line with text, on one line and without control characters; empty for none."""
    lines = [line for line in clean_text(errors).splitlines() if line.strip()]
    return _join(lines[-1]) if lines else ""


def _join(text: str) -> str:
    return " ".join(clean_text(text).split())[:300]


def _list_parts(saying: Saying, record: Mapping[str, object]) -> Sequence[object]:
    if not saying.each:
        return (record,)
    found = find_value(record, saying.each)
    return found if isinstance(found, list) else ()


def _read(saying: Saying, part: object) -> Said:
    if saying.means == "edit":
        text, name = read_change(saying, part), saying.path
    else:
        found = find_value(part, saying.text) if saying.text else ""
        text, name = found if isinstance(found, str) else find_text(part, saying.text) or "", saying.name
    if saying.means in {"tool", "result"}:
        text = text[:LONGEST_RESULT]
    return Said(
        saying.means,
        text=text,
        name=(find_text(part, name) or "") if name else "",
        call=(find_text(part, saying.id) or "") if saying.id else "",
        is_failure=saying.failed is not None and is_meant(saying.failed, part),
        is_piece=saying.pieces,
        about=saying.about,
        steps=_read_steps(saying, part) if saying.means == "plan" else (),
        is_whole=bool(saying.steps.each),
        tokens=_read_tokens(saying, part),
        cost=_read_cost(saying, part),
    )


def _read_steps(saying: Saying, part: object) -> tuple[PlanStep, ...]:
    steps = saying.steps
    found = find_value(part, steps.each) if steps.each else [part]
    return tuple(
        PlanStep(
            id=(find_text(step, steps.id) or "")[:_LONGEST_STEP] if steps.id else "",
            text=(find_text(step, steps.text) or "")[:_LONGEST_STEP] if steps.text else "",
            status=_STATUSES.get(str(find_value(step, steps.status)), "") if steps.status else "",
        )
        for step in (found if isinstance(found, list) else [])[:_MOST_STEPS]
    )


def _read_cost(saying: Saying, part: object) -> float | None:
    """What is no amount of money counts as not told: too large, infinite, negative."""
    found = find_value(part, saying.cost) if saying.cost else None
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found < _MOST_COST:
        return None
    return float(found)


def _read_tokens(saying: Saying, part: object) -> dict[str, int]:
    found = {name: find_value(part, path) for name, path in saying.tokens.items()}
    return {
        name: count
        for name, count in found.items()
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST_TOKENS
    }
