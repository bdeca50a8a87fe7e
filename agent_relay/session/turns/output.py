"""Read a headless agent's standard output: what each record says, and whether the turn succeeded.

A file that a tool changed is reported as a unified diff. Sessions with a screen use this module, too, so
the types of a plan, which are slow to load, are imported only when a record has one.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Literal

import msgspec

from agent_relay.domain.documents.adapter import Meaning, StreamRule, Token, Totals
from agent_relay.domain.documents.record_matching import find_text, find_value, is_meant
from agent_relay.domain.text.plain import LONGEST_RESULT, quote_reason

if TYPE_CHECKING:
    from agent_relay.domain.protocol.run_output import RunPlanStep


LONGEST_DIFF = 20_000
"""Characters of a change that are told; git has the rest."""
_MOST_LINES = 400
"""Most lines of either text; comparing takes the product of both."""


def read_change(saying: StreamRule, part: object) -> str:
    """Return the change as the record gives it, cut at a line's end; empty if it gives none."""
    diff = (find_text(part, saying.text) or "") if saying.text else ""
    if not diff and saying.hunks:
        diff = "\n".join(_join_hunks(find_value(part, saying.hunks)))
    if not diff and saying.after and find_value(part, saying.after) is not None:
        diff = "\n".join(_compare(find_text(part, saying.before) or "", find_text(part, saying.after) or ""))
    return diff if len(diff) <= LONGEST_DIFF else diff[: diff.rfind("\n", 0, LONGEST_DIFF) + 1]


def _join_hunks(found: object) -> Iterator[str]:
    for hunk in found if isinstance(found, list) else ():
        lines = find_value(hunk, "lines")
        if isinstance(lines, list):
            yield f"@@ -{_place(hunk, 'old')} +{_place(hunk, 'new')} @@"
            yield from (str(line) for line in lines)


def _place(hunk: object, side: str) -> str:
    return ",".join(find_text(hunk, f"{side}{what}") or "0" for what in ("Start", "Lines"))


def _compare(before: str, after: str) -> Iterator[str]:
    """Yield the diff without line numbers: where in the file the change is, the record does not say."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) <= _MOST_LINES and len(new) <= _MOST_LINES:
        lines = islice(unified_diff(old, new, lineterm="", n=2), 2, None)
        yield from (line for line in lines if not line.startswith("@@ "))


_MOST_COST = 1e9
_MOST_TOKENS = 1 << 53
"""Highest count that is believed: above it JSON's readers disagree about whole numbers."""
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
"""Agents' words for the state of a step, or for whether it is completed."""
_ENDS = frozenset({"done", "failed"})
_NO_WORK = frozenset({*_ENDS, "refused"})
_MOST_REFUSED = 20
_MOST_CALLS = 1000
_LONGEST_NAME = 100
_WRITTEN = ("output", "reasoning")
"""The tokens an agent's own words are counted in."""


class OutputItem(msgspec.Struct, frozen=True):
    """One thing that a record says.

    `tokens` by kind; `cost` in US dollars, `None` if the agent does not report it. An edit's `name` is its
    file and its `text` the diff. With `totals`, the tokens are the whole conversation's.
    """

    means: Meaning
    text: str = ""
    name: str = ""
    call: str = ""
    is_failure: bool = False
    is_piece: bool = False
    about: Literal["", "plan"] = ""
    steps: "tuple[RunPlanStep, ...]" = ()
    is_whole: bool = False
    tokens: Mapping[str, int] = msgspec.field(default_factory=dict)
    cost: float | None = None
    totals: Totals | None = None


def read_record(sayings: Sequence[StreamRule], record: Mapping[str, object]) -> Iterator[OutputItem]:
    """Yield everything the record says, in the order of `sayings`."""
    for saying in sayings:
        if is_meant(saying.where, record):
            for part in _list_parts(saying, record):
                if is_meant(saying.of, part):
                    yield _read(saying, part)


class TurnVerdict:
    """Result of a turn, by the records so far: `is_done`, or `has_failed` and `why`, if they say so.

    An agent that says it is done and neither said, called, changed nor wrote anything is `is_idle`: it has
    failed, and `why` is what it said of its end. An agent whose adapter describes only ends is believed.
    `refused` are the tools it asked for and was not allowed to use, each once, in the order it asked.
    """

    def __init__(self, sayings: Sequence[StreamRule]) -> None:
        self._ends = [saying for saying in sayings if saying.means in _ENDS]
        self._works = [saying for saying in sayings if saying.means not in _NO_WORK]
        self._refusals = [saying for saying in sayings if saying.means == "refused"]
        self._calls = [saying for saying in sayings if saying.means == "tool"] if self._refusals else []
        self._called: dict[str, str] = {}
        self.refused: tuple[str, ...] = ()
        self._has_worked = not self._works
        self._is_told = self._is_refused = False
        self._last_words = self._refusal = ""

    @property
    def why(self) -> str:
        """The agent's words about a turn that failed; empty if there are none."""
        return self._last_words if self.is_idle else self._refusal

    @property
    def is_done(self) -> bool:
        """True if the turn ended successfully, as far as the records say."""
        return self._is_told and self._has_worked and not self._is_refused

    @property
    def is_idle(self) -> bool:
        """True if the agent reported the turn as done although it did nothing."""
        return self._is_told and not self._has_worked and not self._is_refused

    @property
    def has_failed(self) -> bool:
        """True if the turn failed, as far as the records say."""
        return self._is_refused or self.is_idle

    def hear(self, record: Mapping[str, object]) -> None:
        """Read one more record; a failure is final, whatever later records say."""
        if not self._has_worked:
            self._has_worked = any(_is_work(said) for said in read_record(self._works, record))
        for said in read_record(self._ends, record):
            if said.means == "failed":
                self._is_refused, self._refusal = True, quote_reason(said.text) or self._refusal
            else:
                self._is_told, self._last_words = True, quote_reason(said.text)
        self._note_refusals(record)

    def _note_refusals(self, record: Mapping[str, object]) -> None:
        """Note which tools the record says were refused; some agents name only the call."""
        for said in read_record(self._calls, record):
            if len(self._called) < _MOST_CALLS:
                self._called[said.call] = said.name
        for said in read_record(self._refusals, record):
            name = (said.name or self._called.get(said.call, ""))[:_LONGEST_NAME]
            if name and name not in self.refused and len(self.refused) < _MOST_REFUSED:
                self.refused = (*self.refused, name)


def _is_work(said: OutputItem) -> bool:
    """Return whether the record shows work; the prompt and the tokens it cost do not count."""
    match said.means:
        case "text" | "thought":
            return bool(said.text.strip())
        case "usage":
            return any(said.tokens.get(kind, 0) for kind in _WRITTEN)
        case _:
            return True


def _list_parts(saying: StreamRule, record: Mapping[str, object]) -> Sequence[object]:
    if not saying.each:
        return (record,)
    found = find_value(record, saying.each)
    return found if isinstance(found, list) else ()


def _read(saying: StreamRule, part: object) -> OutputItem:
    if saying.means == "edit":
        text, name = read_change(saying, part), saying.path
    else:
        found = find_value(part, saying.text) if saying.text else ""
        text, name = found if isinstance(found, str) else find_text(part, saying.text) or "", saying.name
    if saying.means in {"tool", "result"}:
        text = text[:LONGEST_RESULT]
    return OutputItem(
        saying.means,
        text=text,
        name=(find_text(part, name) or "") if name else "",
        call=(find_text(part, saying.id) or "") if saying.id else "",
        is_failure=saying.failed is not None and is_meant(saying.failed, part),
        is_piece=saying.pieces,
        about=saying.about,
        steps=_read_steps(saying, part) if saying.means == "plan" else (),
        is_whole=bool(saying.steps.each),
        tokens=read_tokens(saying.tokens, part),
        cost=_read_cost(saying, part),
        totals=saying.totals,
    )


def _read_steps(saying: StreamRule, part: object) -> "tuple[RunPlanStep, ...]":
    # A leg with a screen is heard without them.
    from agent_relay.domain.protocol.run_output import RunPlanStep

    steps = saying.steps
    found = find_value(part, steps.each) if steps.each else [part]
    return tuple(
        RunPlanStep(
            id=(find_text(step, steps.id) or "")[:_LONGEST_STEP] if steps.id else "",
            text=(find_text(step, steps.text) or "")[:_LONGEST_STEP] if steps.text else "",
            status=_STATUSES.get(str(find_value(step, steps.status)), "") if steps.status else "",
        )
        for step in (found if isinstance(found, list) else [])[:_MOST_STEPS]
    )


def _read_cost(saying: StreamRule, part: object) -> float | None:
    """Return the cost; `None` for what is no amount of money: too large, infinite, negative."""
    found = find_value(part, saying.cost) if saying.cost else None
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found < _MOST_COST:
        return None
    return float(found)


def subtract_totals(tokens: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int] | None:
    """Return what a turn used, from the totals after and before it; `None` if a count went down.

    Then the totals are of two conversations. If `earlier` is empty, it is the first turn; otherwise a kind
    that is missing in it is left out.
    """
    known = {name: count for name, count in tokens.items() if not earlier or name in earlier}
    own = {name: count - earlier.get(name, 0) for name, count in known.items()}
    return own if all(count >= 0 for count in own.values()) else None


def read_tokens(paths: Mapping[Token, str], part: object) -> dict[str, int]:
    """Return the counts at `paths`, by kind; anything that is not a count is left out."""
    found = {name: find_value(part, path) for name, path in paths.items()}
    return {
        name: count
        for name, count in found.items()
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST_TOKENS
    }
