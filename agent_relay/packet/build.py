"""Build the resume packet of one handoff: a pure function of facts, tree, signal and the packet before."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from agent_relay.domain.documents import packet as documents
from agent_relay.domain.facts import Facts, Message, Tokens
from agent_relay.domain.limits import Signal
from agent_relay.domain.session import AgentNote
from agent_relay.domain.values import Tree, render_path
from agent_relay.packet import _merge as merging
from agent_relay.packet.checkpoint_facts import cut_middle
from agent_relay.packet.extract import outcomes
from agent_relay.packet.extract.ledger import build_exchanges
from agent_relay.packet.extract.provenance import tell_source
from agent_relay.packet.extract.requests import (
    Pastes,
    find_constraints,
    find_request,
    select_since,
    set_pastes_apart,
    strip_relay,
)
from agent_relay.packet.extract.restated import find_handed_over, leave_out_restated
from agent_relay.packet.extract.statements import find_intent, sort_statements
from agent_relay.packet.extract.turns import list_turns
from agent_relay.packet.freshness import count_changes
from agent_relay.packet.narrative import OwnDocument, add_note, choose_document, leave_out_known

_EXCERPT_LENGTH = 4000
_EXCERPTS = 3


class PacketContext(msgspec.Struct, frozen=True):
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
    reason: documents.Reason
    focus: str = ""
    task: str = ""
    root: str = ""
    prefix: str = ""
    leg_id: str = ""
    leg_started_at: datetime | None = None
    since: datetime | None = None
    relay_texts: tuple[str, ...] = ()


class _Leg(msgspec.Struct, frozen=True):
    """The predecessor's leg, as the packet needs it.

    `facts` are its own, without what relay typed; `before` is the packet it was given, `waiting` the same
    packet if the leg never answered it; `prompt` is the unanswered prompt, `places` the folders its paths are
    relative to.
    """

    facts: Facts
    before: documents.ResumePacket
    waiting: documents.ResumePacket | None
    prompt: documents.Quote | None
    places: merging.Places
    pasted: Pastes


class _Task(NamedTuple):
    """The task, what was pasted with it, and where it was asked."""

    text: str | None
    pasted: str | None
    source: documents.Provenance | None


def build_packet(
    facts: Facts,
    context: PacketContext,
    *,
    tree: Tree | None = None,
    signal: Signal | None = None,
    previous: documents.ResumePacket | None = None,
    written: OwnDocument | None = None,
    note: AgentNote | None = None,
    fresh_prompts: int = 0,
) -> documents.ResumePacket:
    """Build the packet: the contents of `previous`, merged with what the predecessor's leg added.

    `written` is the document its agent was asked for, if that is still fresh; `note` is what it said by
    itself, which counts until more than `fresh_prompts` prompts followed.
    """
    leg = _read_leg(facts, context, tree=tree, previous=previous)
    agent, before = context.previous_agent, leg.before
    document = choose_document(leg.facts, agent=agent, now=context.at, written=written, before=before)
    if note is not None:
        document = add_note(document, note, agent=agent, facts=leg.facts, now=context.at, fresh=fresh_prompts)
    packet = _build_from_leg(leg, context, tree=tree, signal=signal)
    last = max((said.turn for said in leg.facts.conversation), default=0)
    return packet.model_copy(
        update={
            "narrative": document.text or None,
            "narrative_source": document.source,
            "exchanges": leave_out_known(packet.exchanges, document.source, last),
        }
    )


def _build_from_leg(
    leg: _Leg, context: PacketContext, *, tree: Tree | None, signal: Signal | None
) -> documents.ResumePacket:
    """Build everything in the packet except the document its agent wrote."""
    agent, before, facts, prompt = context.previous_agent, leg.before, leg.facts, leg.prompt
    ran = outcomes.build_runs(facts, agent=agent, before=before.validation_runs)
    runs = count_changes(ran, facts, tree, before=before, places=leg.places)
    blockers = outcomes.build_blockers(facts, runs, agent=agent, before=before.blockers)
    plan = merging.merge_plan(before.plan, facts, agent)
    task = _find_task(leg, context)
    exchanges = _build_exchanges(leg, agent)
    prompts = [said for said in facts.conversation if said.role == "user"]
    return documents.ResumePacket(
        packet_id=context.packet_id,
        session_id=context.session_id,
        sequence=context.sequence,
        created_at=context.at,
        previous_agent=agent,
        target_agent=context.target_agent,
        checkpoint_reason=context.reason,
        turn_count=(before.turn_count or 0) + len(prompts),
        task=task.text,
        task_pasted=task.pasted,
        task_source=task.source,
        focus=context.focus or None,
        constraints=_find_rules(leg, exchanges, prompts, agent),
        exchanges=exchanges,
        decisions=merging.merge_decisions(before.decisions, exchanges, task.text or "", task.source),
        attempts=before.attempts,
        remarks=before.remarks,
        blockers=blockers,
        plan=plan,
        touched_files=merging.merge_files(facts, tree, before.touched_files, places=leg.places, agent=agent),
        validation_state=outcomes.build_state(runs),
        validation_runs=runs,
        unprocessed_prompt=prompt,
        next_task=_find_next(leg, plan, runs),
        recent_turns=_build_recent(facts, agent) or before.recent_turns,
        background=_build_background(facts),
        git=_build_git(tree),
        limit=_build_limit(signal),
        usage=_build_usage(facts.tokens),
        lineage=(*before.lineage, _build_entry(facts, context)),
    )


def _find_rules(
    leg: _Leg, exchanges: Sequence[documents.Exchange], prompts: Sequence[Message], agent: str
) -> tuple[documents.Quote, ...]:
    """Find the user's rules of this leg and of earlier ones, those no longer in force marked."""
    before = leg.before.constraints
    lifted = merging.find_lifted(before, prompts)
    lifting = {(one.later, one.words) for one in lifted if not one.says_more}
    rules = merging.merge_constraints(before, find_constraints(leg.facts, lifting), agent)
    return merging.mark_ended(rules, exchanges, prompts, lifted, agent)


def _build_exchanges(leg: _Leg, agent: str) -> tuple[documents.Exchange, ...]:
    turns = list_turns(leg.facts, leg.pasted.turns, sort_statements(leg.facts))
    return merging.merge_exchanges(leg.before.exchanges, build_exchanges(turns, agent))


def _read_leg(
    facts: Facts, context: PacketContext, *, tree: Tree | None, previous: documents.ResumePacket | None
) -> _Leg:
    whole = select_since(facts, context.since)
    own, waits = strip_relay(whole, context.relay_texts)
    before = previous or _build_empty(context)
    waiting = before if waits or not own.conversation else None
    own = leave_out_restated(own, find_handed_over(whole, own), before)
    own, pasted = set_pastes_apart(own)
    root = tree.root if tree else context.root or facts.cwd
    places = merging.Places(root=root, cwd=facts.cwd, prefix=context.prefix)
    return _Leg(
        own,
        before,
        waiting,
        _find_prompt(own, pasted.waiting, waiting, context.previous_agent),
        places,
        pasted,
    )


def _build_empty(context: PacketContext) -> documents.ResumePacket:
    """Build an empty packet, for the first handoff of a session."""
    return documents.ResumePacket(
        packet_id="",
        session_id=context.session_id,
        sequence=1,
        created_at=context.at,
        previous_agent="",
        target_agent=context.previous_agent,
        checkpoint_reason=context.reason,
    )


def _find_task(leg: _Leg, context: PacketContext) -> _Task:
    """Find the task: the one handed over, the one given to relay, or the agent's first request."""
    before = leg.before
    if before.task or context.task:
        return _Task(before.task or context.task, before.task_pasted, before.task_source)
    request = find_request(leg.facts)
    if request is None:
        return _Task(None, None, None)
    text = cut_middle(request.text.strip(), merging.TASK_LENGTH)
    pasted = cut_middle(leg.pasted.turns.get(request.turn, ""), merging.TASK_LENGTH)
    return _Task(text, pasted or None, tell_source(context.previous_agent, request))


def _find_prompt(
    facts: Facts, pasted: str, waiting: documents.ResumePacket | None, agent: str
) -> documents.Quote | None:
    """Find the unanswered prompt. `waiting` is the packet this leg was given and never answered."""
    carried = waiting.unprocessed_prompt if waiting else None
    own = facts.unprocessed_prompt
    if own is None:
        return carried
    source = tell_source(agent, own)
    if carried is None or carried.text in own.text:
        return documents.Quote(text=own.text, pasted=pasted, source=source)
    both = "\n\n".join(part for part in (carried.pasted, pasted) if part)
    return documents.Quote(text=f"{carried.text}\n\n{own.text}", pasted=both, source=carried.source or source)


def _find_next(
    leg: _Leg, plan: Sequence[documents.PlanStep], runs: Sequence[documents.ValidationRun]
) -> str | None:
    """Find what to do first: the unanswered prompt, an open step, a failing check or an announced step."""
    if leg.prompt is not None and leg.prompt.text:
        return leg.prompt.text
    step = next((one for one in plan if one.status == "in_progress"), None)
    step = step or next((one for one in plan if one.status == "pending"), None)
    if step is not None:
        return step.text
    failed = [run for run in {run.kind: run for run in runs}.values() if run.verdict == "failed"]
    if failed:
        line = outcomes.find_telling_line(failed[0].output_tail)
        return f"make `{failed[0].command}` pass" + (f": {line}" if line else "")
    intent = find_intent(leg.facts)
    if intent:
        return f"continue: {intent}"
    return leg.waiting.next_task if leg.waiting else None


def _build_recent(facts: Facts, agent: str) -> tuple[documents.TurnExcerpt, ...]:
    """Quote the last exchange, and the one before it if the last was not answered.

    If only relay prompted the agent, quote what the agent said last.
    """
    users = [index for index, said in enumerate(facts.conversation) if said.role == "user"]
    if not users:
        return tuple(_quote(said, agent) for said in facts.conversation[-_EXCERPTS:])
    last = facts.conversation[users[-1] :]
    excerpts = [*last[:1], *last[1:][-_EXCERPTS:]]
    if len(last) == 1 and len(users) > 1:
        earlier = facts.conversation[users[-2] : users[-1]]
        excerpts = [*earlier[:1], *earlier[1:][-1:], *excerpts]
    return tuple(_quote(said, agent) for said in excerpts)


def _quote(said: Message, agent: str) -> documents.TurnExcerpt:
    text = cut_middle(said.text, _EXCERPT_LENGTH)
    return documents.TurnExcerpt(role=said.role, text=text, source=tell_source(agent, said))


def _build_background(facts: Facts) -> tuple[documents.Background, ...]:
    found = []
    for text in facts.background:
        kind, _, words = text.partition(": ")
        if kind == "shell":
            found.append(documents.Background(kind="shell", text=words))
        else:
            found.append(documents.Background(kind="subagent", text=words if kind == "subagent" else text))
    return tuple(found)


def _build_git(tree: Tree | None) -> documents.GitState | None:
    if tree is None or (tree.is_whole and not tree.is_git):
        return None
    return documents.GitState(
        root=render_path(tree.root),
        branch=tree.branch,
        head=tree.head,
        dirty=tree.dirty,
        fingerprint=tree.fingerprint,
        note=tree.note,
    )


def _build_limit(signal: Signal | None) -> documents.LimitFacts | None:
    if signal is None:
        return None
    return documents.LimitFacts(scope=signal.scope, resets_at=signal.resets_at, evidence=signal.evidence.text)


def _build_usage(tokens: Tokens) -> documents.Usage | None:
    if tokens == Tokens():
        return None
    return documents.Usage(
        input=tokens.input,
        cached=tokens.cached,
        cache_write=tokens.cache_write,
        output=tokens.output,
        reasoning=tokens.reasoning,
    )


def _build_entry(facts: Facts, context: PacketContext) -> documents.LineageEntry:
    """Describe the predecessor's leg: who it was, and the packet by which it handed over."""
    return documents.LineageEntry(
        agent=context.previous_agent,
        leg_id=context.leg_id,
        native_id=facts.native_id,
        started_at=context.leg_started_at or facts.started_at,
        ended_at=facts.ended_at,
        reason=str(context.reason),
        packet_id=context.packet_id,
    )
