"""Define the report on a handoff that is judged: criteria and how they were checked, blockers, parts done.

The command line, the MCP server and the daemon share these types: a request carries a `HandoffReport`.
"""

from enum import StrEnum

import msgspec


class CriterionVerdict(StrEnum):
    """The verdict on a criterion; `UNCHECKED` if nobody checked it."""

    MET = "met"
    UNMET = "unmet"
    UNCHECKED = "unchecked"


RELAY = "relay"
"""The name under which relay itself reports a criterion that it checked by a command."""
BLOCKER_KINDS = ("access", "decision", "dependency", "environment", "information", "limit", "other")
"""The kinds of blockers, by what is missing: a permission, a choice, somebody else's work, and so on."""
LONGEST_OUTPUT = 2000
"""The number of characters kept from the end of a command's output."""


class CriterionReport(msgspec.Struct, frozen=True):
    """A report on a criterion, named by its text or number; `how` is how it was checked."""

    criterion: str
    met: bool
    how: str


class BlockerReport(msgspec.Struct, frozen=True):
    """An obstacle of one of `BLOCKER_KINDS`, and what is required to remove it."""

    kind: str
    text: str
    requires: str = ""


class HandoffReport(msgspec.Struct, frozen=True):
    """The outcome of a handoff, as reported by its judge; fields nobody filled in are empty.

    `deliverables` exist now, and are paths or words. `completed` and `incomplete` are the parts of the
    task, `questions` are open ones, `suggested_next` is what should be done next.
    """

    deliverables: tuple[str, ...] = ()
    criteria: tuple[CriterionReport, ...] = ()
    completed: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    blockers: tuple[BlockerReport, ...] = ()
    questions: tuple[str, ...] = ()
    suggested_next: str = ""


NO_REPORT = HandoffReport()
