"""How a headless agent's tool changed a file, as a unified diff."""

from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice

from agent_relay.domain.saying import Saying
from agent_relay.logic.detector.records import find_text, find_value

LONGEST_DIFF = 20_000
"""Characters of a change that are told; git has the rest."""
_MOST_LINES = 400
"""Of either text; comparing takes the product of both."""


def read_change(saying: Saying, part: object) -> str:
    """The change as far as the record tells it, cut at a line's end; empty where it does not."""
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
    """Where in the file it is nobody knows."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) <= _MOST_LINES and len(new) <= _MOST_LINES:
        lines = islice(unified_diff(old, new, lineterm="", n=2), 2, None)
        yield from (line for line in lines if not line.startswith("@@ "))
