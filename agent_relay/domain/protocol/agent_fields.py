"""The fields of operations that an agent requests through its tools."""

from typing import Annotated

import msgspec

from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.handoff_report import BlockerReport, CriterionReport, HandoffReport

NOTE_KEY = "note_by_agent_relay"
"""The key of an answer whose text says how full the agent's context is; most answers have none."""


class AgentFields(Fields):
    """An operation of the agent at work in `leg`, which proves by its `token` that it is that agent."""

    leg: str
    token: str


class AgentRecallFields(AgentFields):
    """A search of the session's earlier agents; with `turn`, one whole turn."""

    query: str = ""
    turn: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3


class FileNote(msgspec.Struct, kw_only=True):
    """A file the successor should look at; `lines` is a range such as `138-155`."""

    path: str
    lines: str = ""
    note: str = ""


class AgentHandoffFields(AgentFields):
    """A handoff that the agent asks for; the first five are needed, and named if they are missing."""

    to: str = ""
    title: str = ""
    intent: str = ""
    current_state: str = ""
    next_step: str = ""
    priority: str = ""
    repo: str = ""
    branch: str = ""
    files: tuple[FileNote, ...] = ()
    blockers: tuple[str, ...] = ()
    history_summary: str = ""


class AgentCompactFields(AgentFields):
    """The agent's wish for its conversation to be compacted."""

    reason: str = ""


class AgentShowFields(AgentFields):
    """A handoff of the session to show, by its id or the end of it."""

    handoff: str = ""


class AgentPlanFields(AgentFields):
    """A handoff to plan."""

    needs: tuple[str, ...] = ()


class AgentNoteFields(AgentFields):
    """A note of the agent on its work, or on the handoff that started it."""

    note: str = ""


class AgentVerdictFields(AgentNoteFields, kw_only=True):
    """The agent's verdict on the handoff that started it, with the evidence."""

    verdict: str
    deliverables: tuple[str, ...] = ()
    criteria: tuple[CriterionReport, ...] = ()
    completed: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    blockers: tuple[BlockerReport, ...] = ()
    questions: tuple[str, ...] = ()
    suggested_next: str = ""

    @property
    def report(self) -> HandoffReport:
        """The evidence."""
        return HandoffReport(
            self.deliverables,
            self.criteria,
            self.completed,
            self.incomplete,
            self.blockers,
            self.questions,
            self.suggested_next,
        )


class AgentCheckpointFields(AgentNoteFields):
    """A note on the state of the agent's work."""

    next_step: str = ""
