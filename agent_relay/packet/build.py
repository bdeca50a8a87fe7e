"""Build the resume packet of one handoff: a pure function of facts, tree, signal and the packet before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_relay.domain.documents.packet import (
    Attempt,
    Background,
    Blocker,
    GitState,
    LimitFacts,
    LineageEntry,
    PlanStep,
    Provenance,
    Quote,
    Reason,
    ResumePacket,
    TurnExcerpt,
    Usage,
    ValidationRun,
)
from agent_relay.domain.facts import Facts, Message, Tokens
from agent_relay.domain.limits import Signal
from agent_relay.domain.values.ids import Tree, render_path
from agent_relay.packet._check_commands import find_telling_line
from agent_relay.packet._merge import (
    Places,
    build_task,
    cut_middle,
    merge_attempts,
    merge_constraints,
    merge_decisions,
    merge_files,
    merge_plan,
    merge_remarks,
    tell_source,
)
from agent_relay.packet.extract.conversation import select_since, strip_relay
from agent_relay.packet.extract.requests import find_constraints, find_requests
from agent_relay.packet.extract.statements import find_intent, sort_statements
from agent_relay.packet.outcomes import build_blockers, build_failures, build_runs, build_state

_EXCERPT_LENGTH = 4000
_EXCERPTS = 3


@dataclass(frozen=True, slots=True)
class PacketContext:
    """The handoff a packet is for.

    `root` is the folder paths are relative to where there is no git tree, `prefix` the session's folder
    relative to the root. `task` is what the user gave relay itself, for legs without a transcript.
    `since` leaves out what the transcript holds of earlier legs (a resumed native session).
    `relay_texts` are the openings relay typed, placeholders as in the adapter.
    """

    packet_id: str
    session_id: str
    sequence: int
    at: datetime
    previous_agent: str
    target_agent: str
    reason: Reason
    focus: str = ""
    task: str = ""
    root: str = ""
    prefix: str = ""
    leg_id: str = ""
    leg_started_at: datetime | None = None
    since: datetime | None = None
    relay_texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Leg:
    """The predecessor's leg, as the packet needs it.

    `facts` are its own, without what relay typed; `before` is the packet it was given, `waiting` the same
    packet if the leg never answered it; `prompt` is the unanswered prompt, `places` the folders its paths are
    relative to.
    """

    facts: Facts
    before: ResumePacket
    waiting: ResumePacket | None
    prompt: Quote | None
    places: Places


def build_packet(
    facts: Facts,
    context: PacketContext,
    *,
    tree: Tree | None = None,
    signal: Signal | None = None,
    previous: ResumePacket | None = None,
) -> ResumePacket:
    """Build the packet: what `previous` carries, merged with what the predecessor's leg added to it."""
    leg = _read_leg(facts, context, tree=tree, previous=previous)
    agent, before, facts, prompt = context.previous_agent, leg.before, leg.facts, leg.prompt
    runs, blockers, failures = _find_obstacles(facts, agent=agent, before=before)
    plan, said = merge_plan(before.plan, facts, agent), sort_statements(facts)
    task, task_source = _find_task(leg, context)
    return ResumePacket(
        packet_id=context.packet_id,
        session_id=context.session_id,
        sequence=context.sequence,
        created_at=context.at,
        previous_agent=agent,
        target_agent=context.target_agent,
        checkpoint_reason=context.reason,
        turn_count=(before.turn_count or 0) + sum(said.role == "user" for said in facts.conversation),
        task=task,
        task_source=task_source,
        focus=context.focus or None,
        constraints=merge_constraints(before.constraints, find_constraints(facts), agent),
        decisions=merge_decisions(before.decisions, said.decisions, agent),
        attempts=merge_attempts(before.attempts, said.attempts, failures, agent),
        remarks=merge_remarks(before.remarks, said.remarks, agent),
        blockers=blockers,
        plan=plan,
        touched_files=merge_files(facts, tree, before.touched_files, places=leg.places, agent=agent),
        validation_state=build_state(runs),
        validation_runs=runs,
        unprocessed_prompt=prompt,
        next_task=_find_next(leg, plan, runs),
        recent_turns=_build_recent(facts, agent) or before.recent_turns,
        background=_build_background(facts),
        git=_build_git(tree),
        limit=_build_limit(signal),
        usage=_build_usage(facts.tokens),
        lineage=(*before.lineage, _build_entry(facts, context)),
        narrative=facts.summary or before.narrative,
    )


def _find_obstacles(
    facts: Facts, *, agent: str, before: ResumePacket
) -> tuple[tuple[ValidationRun, ...], tuple[Blocker, ...], list[Attempt]]:
    """Find the checks, the blockers, and the failed commands that are neither."""
    runs = build_runs(facts, agent=agent, before=before.validation_runs)
    blockers = build_blockers(facts, runs, agent=agent, before=before.blockers)
    return runs, blockers, build_failures(facts, agent, told=blockers)


def _read_leg(
    facts: Facts, context: PacketContext, *, tree: Tree | None, previous: ResumePacket | None
) -> _Leg:
    own, waits = strip_relay(select_since(facts, context.since), context.relay_texts)
    before = previous or _nothing(context)
    waiting = before if waits or not own.conversation else None
    root = tree.root if tree else context.root or facts.cwd
    places = Places(root=root, cwd=facts.cwd, prefix=context.prefix)
    return _Leg(own, before, waiting, _find_prompt(own, waiting, context.previous_agent), places)


def _nothing(context: PacketContext) -> ResumePacket:
    """Build an empty packet, for the first handoff of a session."""
    return ResumePacket(
        packet_id="",
        session_id=context.session_id,
        sequence=1,
        created_at=context.at,
        previous_agent="",
        target_agent=context.previous_agent,
        checkpoint_reason=context.reason,
    )


def _find_task(leg: _Leg, context: PacketContext) -> tuple[str | None, Provenance | None]:
    """Find the task, and its source if that is known."""
    given = leg.before.task or context.task or None
    requests = find_requests(leg.facts, has_task=given is not None)
    task = build_task(given, requests, waiting=leg.prompt.text if leg.prompt else "")
    source = leg.before.task_source
    if source is None and task and requests and task.startswith(requests[0].text.strip()[:_EXCERPT_LENGTH]):
        source = tell_source(context.previous_agent, requests[0])
    return task, source


def _find_prompt(facts: Facts, waiting: ResumePacket | None, agent: str) -> Quote | None:
    """Find the unanswered prompt. `waiting` is the packet this leg was given and never answered."""
    carried = waiting.unprocessed_prompt if waiting else None
    own = facts.unprocessed_prompt
    if own is None:
        return carried
    source = tell_source(agent, own)
    if carried is None or carried.text in own.text:
        return Quote(text=own.text, source=source)
    return Quote(text=f"{carried.text}\n\n{own.text}", source=carried.source or source)


def _find_next(leg: _Leg, plan: Sequence[PlanStep], runs: Sequence[ValidationRun]) -> str | None:
    """Find what to do first.

    This is an open step of the plan, the unanswered prompt, a failing check or what the agent announced, in
    this order; a prompt newer than the plan comes before it.
    """
    step = next((one for one in plan if one.status == "in_progress"), None)
    step = step or next((one for one in plan if one.status == "pending"), None)
    facts, prompt = leg.facts, leg.prompt
    asked_at = facts.unprocessed_prompt.turn if facts.unprocessed_prompt else 0
    planned_at = max((one.turn for one in facts.plan), default=0)
    if step is not None and (prompt is None or not asked_at or planned_at >= asked_at):
        return step.text
    if prompt is not None:
        return prompt.text
    failed = [run for run in {run.kind: run for run in runs}.values() if run.verdict == "failed"]
    if failed:
        line = find_telling_line(failed[0].output_tail)
        return f"make `{failed[0].command}` pass" + (f": {line}" if line else "")
    intent = find_intent(facts)
    if intent:
        return f"continue: {intent}"
    return leg.waiting.next_task if leg.waiting else None


def _build_recent(facts: Facts, agent: str) -> tuple[TurnExcerpt, ...]:
    """Quote the last exchange, and the one before it if the last was not answered."""
    users = [index for index, said in enumerate(facts.conversation) if said.role == "user"]
    if not users:
        return ()
    last = facts.conversation[users[-1] :]
    excerpts = [*last[:1], *last[1:][-_EXCERPTS:]]
    if len(last) == 1 and len(users) > 1:
        earlier = facts.conversation[users[-2] : users[-1]]
        excerpts = [*earlier[:1], *earlier[1:][-1:], *excerpts]
    return tuple(_quote(said, agent) for said in excerpts)


def _quote(said: Message, agent: str) -> TurnExcerpt:
    text = cut_middle(said.text, _EXCERPT_LENGTH)
    return TurnExcerpt(role=said.role, text=text, source=tell_source(agent, said))


def _build_background(facts: Facts) -> tuple[Background, ...]:
    found = []
    for text in facts.background:
        kind, _, words = text.partition(": ")
        if kind == "shell":
            found.append(Background(kind="shell", text=words))
        else:
            found.append(Background(kind="subagent", text=words if kind == "subagent" else text))
    return tuple(found)


def _build_git(tree: Tree | None) -> GitState | None:
    if tree is None or (tree.is_whole and not tree.is_git):
        return None
    return GitState(
        root=render_path(tree.root),
        branch=tree.branch,
        head=tree.head,
        dirty=tree.dirty,
        fingerprint=tree.fingerprint,
        note=tree.note,
    )


def _build_limit(signal: Signal | None) -> LimitFacts | None:
    if signal is None:
        return None
    return LimitFacts(scope=signal.scope, resets_at=signal.resets_at, evidence=signal.evidence.text)


def _build_usage(tokens: Tokens) -> Usage | None:
    if tokens == Tokens():
        return None
    return Usage(
        input=tokens.input,
        cached=tokens.cached,
        cache_write=tokens.cache_write,
        output=tokens.output,
        reasoning=tokens.reasoning,
    )


def _build_entry(facts: Facts, context: PacketContext) -> LineageEntry:
    """Describe the predecessor's leg: who it was, and the packet by which it handed over."""
    return LineageEntry(
        agent=context.previous_agent,
        leg_id=context.leg_id,
        native_id=facts.native_id,
        started_at=context.leg_started_at or facts.started_at,
        ended_at=facts.ended_at,
        reason=str(context.reason),
        packet_id=context.packet_id,
    )
