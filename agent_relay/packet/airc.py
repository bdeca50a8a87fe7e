"""Write a packet as an AIRC handoff (version 1), the exchange format of other tools, and read one."""

import re
from datetime import datetime
from typing import Literal

from pydantic import Field, ValidationError

from agent_relay.domain.documents.document import Document
from agent_relay.domain.documents.packet import Blocker, GitState, Reason, ResumePacket, TouchedFile
from agent_relay.domain.errors import UntrustedDataError

VERSION = "1.0"
_TITLE_LENGTH = 80
_HANDLE = re.compile(r"[a-z][a-z0-9-]{0,31}")
_MARKS = {"completed": "x", "in_progress": "~", "cancelled": "-", "pending": " "}


class AircTask(Document):
    """The task that is handed over."""

    title: str
    intent: str
    priority: Literal["low", "medium", "high", "critical"] = "medium"


class AircFile(Document):
    """A file of interest; `lines` is a range such as `138-155`."""

    path: str
    lines: str | None = None
    note: str | None = None


class AircContext(Document):
    """The state of the work."""

    current_state: str
    next_step: str
    repo: str | None = None
    branch: str | None = None
    files: tuple[AircFile, ...] = ()
    blockers: tuple[str, ...] = ()


class AircHistory(Document):
    """The history of the work."""

    summary: str = ""


class AircHandoff(Document):
    """The payload. `from` and the ids are the sender's and may be missing."""

    to: str
    task: AircTask
    context: AircContext
    history: AircHistory = AircHistory()
    type: Literal["handoff"] = "handoff"
    version: str = VERSION
    handoff_id: str = ""
    timestamp: str = ""
    sender: str = Field(default="", alias="from")


def render_request(handoff: AircHandoff) -> str:
    """Render the handoff as a message for people: HANDOFF, TASK, STATE, NEXT STEP, FILES and what else is."""
    context, task = handoff.context, handoff.task
    place = " ".join(part for part in (context.repo or "", context.branch or "") if part)
    parts = (
        ("HANDOFF", f"to {handoff.to}, priority {task.priority}"),
        ("TASK", f"{task.title}\n{task.intent}"),
        ("WHERE", place),
        ("STATE", context.current_state),
        ("NEXT STEP", context.next_step),
        ("FILES", "\n".join(f"- {describe_note(file)}" for file in context.files)),
        ("BLOCKERS", "\n".join(f"- {text}" for text in context.blockers)),
        ("HISTORY", handoff.history.summary),
    )
    return "\n\n".join(f"{name}\n{text.strip()}" for name, text in parts if text.strip())


def describe_note(file: AircFile) -> str:
    """Return the file as people read it: `src/a.py:138-155 — why`."""
    return _join(_join(file.path, file.lines or "", ":"), file.note or "", " — ")


def is_airc(document: dict[str, object]) -> bool:
    """Check whether the object looks like an AIRC handoff, on its own or in a message."""
    return "schema" not in document and (
        "payload" in document or {"to", "task", "context"} <= document.keys()
    )


def render_airc(packet: ResumePacket) -> dict[str, object]:
    """Render the packet as an AIRC handoff.

    What AIRC has no field for is in `history.summary`, line by line.
    """
    extra = packet.model_extra or {}
    task = (
        (packet.task or "").strip()
        or (packet.focus or "").strip()
        or "Go on with the work in this repository."
    )
    git = packet.git
    handoff = AircHandoff.model_validate(
        {
            "to": packet.target_agent,
            "from": packet.previous_agent,
            "handoff_id": packet.packet_id,
            "timestamp": packet.created_at.isoformat(),
            "task": {
                "title": task.splitlines()[0][:_TITLE_LENGTH],
                "intent": task,
                "priority": extra["priority"]
                if extra.get("priority") in ("low", "high", "critical")
                else "medium",
            },
            "context": {
                "repo": git.root if git else None,
                "branch": git.branch if git else None,
                "files": [_describe_file(file) for file in packet.touched_files],
                "current_state": _describe_state(packet),
                "next_step": _find_next(packet),
                "blockers": [_join(one.summary, one.evidence, ": ") for one in packet.blockers],
            },
            "history": {"summary": "\n".join(_list_history(packet))},
        }
    )
    return handoff.model_dump(by_alias=True, exclude_none=True)


def parse_airc(
    document: dict[str, object], *, packet_id: str, session_id: str, at: datetime, name: str = "the file"
) -> ResumePacket:
    """Parse an AIRC handoff into a packet; its state and history become the narrative.

    Raises UntrustedDataError naming the field that is missing or invalid, never its contents.
    """
    handoff = _read_handoff(document, name)
    task, context = handoff.task, handoff.context
    repeats = task.intent.strip().startswith(task.title.strip())
    files = [describe_note(file) for file in context.files]
    words = [context.current_state, handoff.history.summary, "\n".join(f"- {line}" for line in files)]
    has_tree = context.repo or context.branch
    packet = ResumePacket(
        packet_id=packet_id,
        session_id=session_id,
        sequence=1,
        created_at=at,
        previous_agent=name_agent(handoff.sender) or "unknown",
        target_agent=name_agent(handoff.to) or "unknown",
        checkpoint_reason=Reason.MANUAL,
        task=task.intent if repeats else f"{task.title}\n\n{task.intent}",
        next_task=context.next_step,
        blockers=tuple(Blocker(id=f"B{n}", summary=text) for n, text in enumerate(context.blockers, 1)),
        touched_files=tuple(
            TouchedFile.model_validate({**file.model_dump(exclude_none=True), "status": "read"})
            for file in context.files
        ),
        git=GitState(root=context.repo or "", branch=context.branch) if has_tree else None,
        narrative="\n\n".join(text for text in words if text.strip()) or None,
    )
    # No field of version 1: readers keep it as one they do not know.
    return ResumePacket.model_validate({**packet.model_dump(by_alias=True), "priority": task.priority})


def _read_handoff(document: dict[str, object], name: str) -> AircHandoff:
    """Parse the handoff in the object itself, or in the message around it.

    Raises UntrustedDataError if it is invalid or of another version.
    """
    inner = document.get("payload", document)
    document = inner if isinstance(inner, dict) else document
    summary = document.get("history_summary")
    if isinstance(summary, str) and "history" not in document:
        document = {**document, "history": {"summary": summary}}
    try:
        handoff = AircHandoff.model_validate(document)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UntrustedDataError(
            f"{name} is not an AIRC handoff: {where}: {first['msg']}", hint="Its format is AIRC handoff v1."
        ) from None
    if not handoff.version.startswith("1"):
        raise UntrustedDataError(
            f"{name} is an AIRC handoff of an unknown version", hint="Upgrade agent-relay."
        )
    return handoff


def name_agent(handle: str) -> str:
    """Derive an agent's name from a handle such as `@Codex_Agent`, empty if it cannot be one."""
    name = handle.strip().lower().removeprefix("@").replace("_", "-").removesuffix("-agent")
    return name if _HANDLE.fullmatch(name) else ""


def _join(text: str, more: str, by: str) -> str:
    return f"{text}{by}{more}" if more else text


def _describe_file(file: TouchedFile) -> dict[str, object]:
    extra = file.model_extra or {}
    known = {key: extra[key] for key in ("lines", "note") if isinstance(extra.get(key), str)}
    counts = (
        "" if file.added is None and file.removed is None else f" (+{file.added or 0} -{file.removed or 0})"
    )
    return {"path": file.path, "note": f"{file.status}{counts}", **known}


def _describe_state(packet: ResumePacket) -> str:
    lines = [f"[{_MARKS[step.status]}] {step.text}" for step in packet.plan]
    checks = packet.validation_state
    states = {"tests": checks.tests, "lint": checks.lint, "typecheck": checks.typecheck}
    lines += [f"{kind}: {state}" for kind, state in states.items() if state]
    lines += [f"still running: {one.kind}: {one.text}" for one in packet.background]
    if packet.narrative:
        lines.append(packet.narrative)
    return "\n".join(lines) or "Not recorded: see the history and the files."


def _find_next(packet: ResumePacket) -> str:
    prompt = packet.unprocessed_prompt
    if packet.next_task and not (prompt and packet.next_task == prompt.text):
        return packet.next_task
    if prompt:
        pasted = f"\nPasted with it and written by others: {prompt.pasted}" if prompt.pasted else ""
        return f"Answer the user, who sent this last: {prompt.text}{pasted}"
    waiting = next((step.text for step in packet.plan if step.status in {"in_progress", "pending"}), "")
    return waiting or "Not recorded: find it from the state of the files."


def _list_history(packet: ResumePacket) -> list[str]:
    lines = [f"Rule of the user: {one.text}" for one in packet.constraints]
    lines += [
        f"Decided by the user: {_join(one.said, one.on, ' — answering: ')}"
        for one in packet.exchanges
        if one.is_settled
    ]
    lines += [f"Decided: {_join(one.summary, one.why, ' — because ')}" for one in packet.decisions]
    lines += [f"Tried: {_join(one.summary, one.outcome, ' — ')}" for one in packet.attempts]
    prompt = packet.unprocessed_prompt
    if packet.next_task and prompt and packet.next_task != prompt.text:
        lines.append(f"Not answered yet: {prompt.text}")
    return lines
