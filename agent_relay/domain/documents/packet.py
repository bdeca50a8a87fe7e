"""Define the resume packet as a pydantic model."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from agent_relay.domain.documents.document import Document
from agent_relay.domain.limits import Scope

SCHEMA: Literal["agent-relay/resume-packet"] = "agent-relay/resume-packet"
VERSION = 1


class Reason(StrEnum):
    """Reason for which the session changed hands."""

    RATE_LIMIT = "rate_limit"
    MANUAL = "manual"
    CONTEXT = "context"
    COMMAND = "command"
    FAILURE = "failure"


class Provenance(Document):
    """Source from which an entry was quoted. `turn` counts the user's prompts from 1."""

    agent: str
    transcript: str = ""
    turn: int | None = None
    at: datetime | None = None


class Quote(Document):
    """Words quoted verbatim; `pasted` is text by others that came with them.

    If they were taken back or corrected, `ended_how` says which, `ended_in` is the turn that did it and
    `ended_by` the words that did. The words `revisited_by` of the turn `revisited_in` seem to change them,
    which a reader has to judge.
    """

    text: str
    pasted: str = ""
    ended_in: int | None = None
    ended_how: Literal["taken back", "corrected"] | None = None
    ended_by: str = ""
    revisited_in: int | None = None
    revisited_by: str = ""
    source: Provenance | None = None


class Decision(Document):
    """Something settled; `in_ledger` is whether an exchange of the ledger contains it."""

    id: str
    summary: str
    why: str = ""
    in_ledger: bool | None = None
    source: Provenance | None = None


class Attempt(Document):
    """Something that was tried, and its result."""

    summary: str
    outcome: str = ""
    source: Provenance | None = None


class Exchange(Document):
    """A prompt that chose, ruled, corrected or led to work, and what the record shows of it.

    `said` is the user's own words, empty for unprompted work; `pasted` is text by others that came with them;
    `on` is what the agent had said before, with all options, if the words answer it. `failed` has a line for
    each run that failed in the turn (the command, and the line that shows why), `measured` is what was
    measured, `told` the beginning of the agent's last answer and what it decided. `is_settled` is whether
    the user chose or confirmed something that still holds. If it no longer holds, it was taken back,
    replaced or corrected (`ended_how`) in the turn `ended_in`, by the words `ended_by`; `took_back` is the
    turn whose edits were undone here. `revisited_in` and `revisited_by` are as for a quote, or what the agent
    said against the suspicion that was agreed to. `is_broken_off` is whether the user interrupted it before
    any answer or work. `weight` is how much a successor would miss it.
    """

    said: str = ""
    on: str = ""
    pasted: str = ""
    failed: str = ""
    measured: str = ""
    told: str = ""
    is_settled: bool = False
    took_back: int | None = None
    ended_in: int | None = None
    ended_how: Literal["taken back", "replaced", "corrected"] | None = None
    ended_by: str = ""
    revisited_in: int | None = None
    revisited_by: str = ""
    is_broken_off: bool = False
    weight: int = 0
    source: Provenance | None = None


class Blocker(Document):
    """An obstacle to the work, and where its evidence can be read."""

    id: str
    summary: str
    evidence: str = ""
    source: Provenance | None = None


class PlanStep(Document):
    """One step of the agent's own plan or todo list."""

    text: str
    status: Literal["pending", "in_progress", "completed", "cancelled"] = "pending"
    source: Provenance | None = None


class TouchedFile(Document):
    r"""A file of the work.

    `path` is relative to the git root (or the session's folder), undecodable bytes written `\xNN`.
    Counts are lines; `None` where unknown.
    """

    path: str
    status: Literal["created", "modified", "deleted", "renamed", "read", "untracked"]
    added: int | None = None
    removed: int | None = None
    previous_path: str | None = None
    source: Provenance | None = None


class ValidationRun(Document):
    """One command that checked the work.

    `exit_code` is the check's own, as the agent's transcript has it: `None` where a pipe or a later
    command hides it. `verdict` is its result, judged by the status, else by the output. `changed_since` is
    how many files changed after it, `None` if none is known to have.
    """

    kind: Literal["tests", "lint", "typecheck"]
    command: str
    exit_code: int | None = None
    verdict: Literal["passed", "failed"] | None = None
    changed_since: int | None = None
    at: datetime | None = None
    output_tail: str = ""
    source: Provenance | None = None


class ValidationState(Document):
    """The state after the last run of each kind; `None` also if files changed after it passed."""

    tests: Literal["passed", "failed"] | None = None
    lint: Literal["passed", "failed"] | None = None
    typecheck: Literal["passed", "failed"] | None = None


class TurnExcerpt(Document):
    """One side of an exchange, quoted."""

    role: Literal["user", "assistant", "tool"]
    text: str
    source: Provenance | None = None


class Background(Document):
    """Work the predecessor left running: a subagent or a shell."""

    kind: Literal["subagent", "shell"]
    text: str
    source: Provenance | None = None


class GitState(Document):
    """The tree at the checkpoint. `fingerprint` is SHA-256 over HEAD, the index and the diff.

    `dirty` is `None` where nobody knows.
    """

    root: str
    branch: str | None = None
    head: str | None = None
    dirty: bool | None = None
    fingerprint: str = ""
    note: str = ""


class LimitFacts(Document):
    """The limit that made the handoff necessary."""

    scope: Scope
    resets_at: datetime | None = None
    evidence: str = ""


class LineageEntry(Document):
    """One earlier leg of this session."""

    agent: str
    leg_id: str = ""
    native_id: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    reason: str = ""
    packet_id: str = ""


class Redaction(Document):
    """Number of secrets of one kind that were removed, or spared by the user's allow-list."""

    kind: str
    count: int


class Usage(Document):
    """Tokens the predecessor's leg used, as its transcript says."""

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None


class Cut(Document):
    """A part that did not fit the budget, and where it can be read."""

    section: str
    omitted: int
    path: str = ""


class ResumePacket(Document):
    """One packet. Readers of version n read every version <= n; unknown fields survive.

    `resumes` is the transcript of the conversation the target goes on in: it knows what was said there.
    `unread` is why the predecessor's own transcript could not be read, so that nothing of it is in here.
    `restored` is why, and until when, what it said is from relay's checkpoints instead of that transcript.
    `task_pasted` is text by others that the user pasted with the task.
    `not_understood` is how much of that transcript could not be understood; `last_lines` quotes its end,
    `last_screen` is what the predecessor last showed if its transcript has nothing of this leg.
    `narrative` is a document an agent wrote about its work, on request or when its context was compacted;
    `narrative_source` is its agent, the last prompt it knows of, and when it was written.
    """

    schema_: Literal["agent-relay/resume-packet"] = Field(default=SCHEMA, alias="schema")
    version: int = Field(default=VERSION, ge=1)
    packet_id: str
    session_id: str
    sequence: int = Field(ge=1)
    created_at: datetime
    previous_agent: str
    target_agent: str
    resumes: str | None = None
    unread: str | None = None
    restored: str | None = None
    not_understood: str | None = None
    budget: str | None = None
    checkpoint_reason: Reason
    turn_count: int | None = None
    task: str | None = None
    task_pasted: str | None = None
    task_source: Provenance | None = None
    focus: str | None = None
    constraints: tuple[Quote, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    decisions: tuple[Decision, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    remarks: tuple[Quote, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    touched_files: tuple[TouchedFile, ...] = ()
    validation_state: ValidationState = ValidationState()
    validation_runs: tuple[ValidationRun, ...] = ()
    unprocessed_prompt: Quote | None = None
    next_task: str | None = None
    recent_turns: tuple[TurnExcerpt, ...] = ()
    background: tuple[Background, ...] = ()
    git: GitState | None = None
    limit: LimitFacts | None = None
    usage: Usage | None = None
    lineage: tuple[LineageEntry, ...] = ()
    narrative: str | None = None
    narrative_source: Provenance | None = None
    last_lines: str | None = None
    last_screen: str | None = None
    expectations: dict[str, object] | None = None
    rollback: dict[str, object] | None = None
    redactions: tuple[Redaction, ...] = ()
    spared: tuple[Redaction, ...] = ()
    cuts: tuple[Cut, ...] = ()
