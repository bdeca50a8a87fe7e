"""Answer what the agent at work in a leg asks for through its tools, about its own session alone.

It proves by its leg's token that it is that agent: whoever has none, or another one, learns nothing.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from functools import partial

import msgspec

from agent_relay.agents.launch import LEG_TOKEN
from agent_relay.detect.window_usage import render_windows
from agent_relay.domain import inputs
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.limits import Reading
from agent_relay.domain.names import TOKEN_VARIABLE
from agent_relay.domain.protocol import agent_fields as fields
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.agent_fields import NOTE_KEY
from agent_relay.domain.protocol.operations import Handler, Peer
from agent_relay.domain.session import PRIORITIES, Handoff, Session
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.publishing.limited_work import run_limited
from agent_relay.engine.sessions.asking_process import find_tool_user
from agent_relay.engine.sessions.handoff_requests import build_report
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.sessions.verdicts import HandoffJudge, render_judged
from agent_relay.engine.threads import finish_or_end
from agent_relay.session.handoff_history import HandoffHistory, HandoffRecord, render_result
from agent_relay.session.interventions import REJECTED, VERDICTS, build_handoff_plan
from agent_relay.session.requests import find_own_handoff
from agent_relay.store.context_notes import take_note
from agent_relay.system.limited_process import LimitedProcess, WorkLimit

_REFUSED = "this is not the agent at work in that session"
_HINT = f"An agent that agent-relay started speaks for its own session, by {TOKEN_VARIABLE}"
_NEEDED = ("to", "title", "intent", "current_state", "next_step")
_LONGEST = 8000
_MOST_FILES, _MOST_BLOCKERS = 50, 20
_TAKE_OVER_S = 20.0
"""Longest wait for a leg that a new daemon is still taking over, in seconds."""
_RECALL_LIMIT = WorkLimit(processor_s=20, wall_s=60)
_PRIORITIES = {"medium": "normal", "critical": "urgent"}
"""AIRC's words that are others here."""
_AIRC_PRIORITIES = {"normal": "medium", "urgent": "critical", "": "medium"}


def build_agent_handlers(sessions: SessionRegistry, judge: HandoffJudge) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""
    does = _AgentHandlers(sessions, judge)
    return dict(
        _add_note(sessions, *named)
        for named in (
            op.AGENT_STATUS.performed_by(does.tell_status),
            op.AGENT_RECALL.performed_by(does.recall),
            op.AGENT_HANDOFF.performed_by(does.hand_off),
            op.AGENT_COMPACT.performed_by(does.compact),
            op.AGENT_LIST.performed_by(does.list_handoffs),
            op.AGENT_SHOW.performed_by(does.show_handoff),
            op.AGENT_LIMITS.performed_by(does.tell_limits),
            op.AGENT_PLAN.performed_by(does.plan),
            op.AGENT_ACCEPT.performed_by(does.accept),
            op.AGENT_CLOSE.performed_by(does.close),
            op.AGENT_CHECKPOINT.performed_by(does.note),
        )
    )


def _add_note(sessions: SessionRegistry, name: str, handler: Handler) -> tuple[str, Handler]:
    """Return the handler with the note on its context, if the agent has not read it yet, in its answer."""

    async def handle(sent: Mapping[str, object], peer: Peer) -> Mapping[str, object]:
        answer = await handler(sent, peer)
        # The handler has found the leg by this name.
        folder = f"{sessions.services.folders.legs}/{sent.get('leg')}"
        note = await asyncio.to_thread(take_note, folder)
        return {**answer, NOTE_KEY: note} if note else answer

    return name, handle


class _AgentHandlers:
    def __init__(self, sessions: SessionRegistry, judge: HandoffJudge) -> None:
        self._sessions = sessions
        self._judge = judge

    async def tell_status(self, asked: fields.AgentFields, _peer: Peer) -> Mapping[str, object]:
        """Return the session as its agent may see it: task, state, order, context, pending handoff."""
        host, live = await self._find(asked)
        session, reading = host.session, live.reading
        near = session.near
        return {
            "session": session.id,
            "agent": session.agent,
            "state": session.shown_state.value,
            "task": session.task,
            "order": list(session.roster),
            "handoffs": len(session.done),
            "brought_by": _render_own(session, asked.leg),
            "asked_for": _render_request(session),
            "context": _render_context(reading, self._sessions.services.config.context.mode),
            "near_limit": {"text": near.text, "until": near.until} if near is not None else None,
        }

    async def recall(self, asked: fields.AgentRecallFields, _peer: Peer) -> Mapping[str, object]:
        """Search what the session's earlier agents were asked, said and did."""
        from agent_relay.engine.publishing.packet_pipeline import get_allow
        from agent_relay.engine.publishing.recall_building import RecallOrder, recall

        host, live = await self._find(asked)
        services, session = self._sessions.services, host.session
        order = RecallOrder(
            session.root,
            session.id,
            session.cwd or session.root,
            asked.leg,
            dict(live.launch_environment.environ),
            dict(services.adapters),
            get_allow(services),
            query=asked.query,
            turn=asked.turn,
            limit=asked.limit,
        )
        process = LimitedProcess()
        return await finish_or_end(process.end, run_limited, process, _RECALL_LIMIT, partial(recall, order))

    async def hand_off(self, asked: fields.AgentHandoffFields, peer: Peer) -> Mapping[str, object]:
        """Hand the session over when the agent's turn is over; return the request as recorded."""
        from agent_relay.packet.airc import AircHandoff, name_agent, render_request

        host, _ = await self._find(asked)
        missing = [name for name in _NEEDED if not getattr(asked, name).strip()]
        if missing:
            raise WrongUseError(
                f"the handoff lacks {', '.join(missing)}", hint=f"It needs {', '.join(_NEEDED)}"
            )
        _check_lengths(asked)
        agent, priority = name_agent(asked.to), _parse_priority(asked.priority)
        self._sessions.services.get_adapter(agent or asked.to)
        payload = AircHandoff.model_validate(_build_payload(asked, host.session, agent, priority))
        wished = inputs.HandoffWished(
            asked.leg,
            agent,
            asked.title.strip(),
            render_request(payload),
            asked.next_step.strip(),
            priority,
            tuple(
                json.dumps({name: text for name, text in msgspec.to_builtins(file).items() if text})
                for file in asked.files
            ),
            asker=await find_tool_user(peer),
        )
        session = await host.ask(wished)
        document = payload.model_dump(by_alias=True, exclude_none=True)
        number = session.request.id if session.request is not None else ""
        asked_at = session.request.at.isoformat() if session.request is not None else ""
        return {
            "handoff": number,
            "to": agent,
            "begins": "when this turn is over: end it now, and do no more work",
            "message": wished.text,
            "payload": {**document, "handoff_id": number, "timestamp": asked_at},
        }

    async def compact(self, asked: fields.AgentCompactFields, _peer: Peer) -> Mapping[str, object]:
        """Have the agent's conversation compacted when its turn is over, or ask the user, as configured."""
        host, live = await self._find(asked)
        _check_text("reason", asked.reason)
        if not live.adapter.deliver.compact:
            raise WrongUseError(f"{live.leg.agent} has no command that makes its conversation shorter")
        session = await host.ask(inputs.CompactWished(asked.leg, asked.reason.strip()))
        if session.context.wish == "ask":
            return {"compacts": False, "message": "The user is asked, and decides."}
        return {"compacts": True, "message": "It is compacted when this turn is over: end it now."}

    async def list_handoffs(self, asked: fields.AgentFields, _peer: Peer) -> Mapping[str, object]:
        """List the handoffs of the session, oldest first."""
        host, _ = await self._find(asked)
        records = HandoffHistory(tuple(host.events)).records
        return {"handoffs": [_render_record(record) for record in records]}

    async def show_handoff(self, asked: fields.AgentShowFields, _peer: Peer) -> Mapping[str, object]:
        """Return one handoff of the session: what it expects, and how it was judged."""
        host, _ = await self._find(asked)
        records = HandoffHistory(tuple(host.events)).records
        found = [one for one in records if asked.handoff and one.id.endswith(asked.handoff)]
        if len(found) != 1:
            raise WrongUseError(f"this session has no handoff {asked.handoff[:40]!r}", hint="Call list")
        return _render_record(found[0]) | render_result(found[0])

    async def tell_limits(self, asked: fields.AgentFields, _peer: Peer) -> Mapping[str, object]:
        """Return which agents in the order can work, which rest until when, and their usage windows."""
        host, _ = await self._find(asked)
        context = await host.runner.build_context(host.session)
        windows = render_windows(self._sessions.list_windows())
        known = ((name, context.availability.get(name)) for name in host.session.roster)
        agents = [
            {
                "agent": name,
                "installed": state is not None and state.installed,
                "signed_in": state is not None and state.signed_in,
                "rests": state is not None and state.resting,
                "until": state.rests_until.isoformat() if state is not None and state.rests_until else "",
                "assumed": state is not None and state.resting and state.assumed,
                "scope": state.scope if state is not None else "",
                "windows": windows.get(name, []),
            }
            for name, state in known
        ]
        return {"agents": agents}

    async def plan(self, asked: fields.AgentPlanFields, _peer: Peer) -> Mapping[str, object]:
        """Return the agent a handoff would go to now, and why others are passed over; change nothing."""
        host, _ = await self._find(asked)
        context = await host.runner.build_context(host.session)
        return build_handoff_plan(host.session, context, needs=asked.needs[:_MOST_BLOCKERS])

    async def accept(self, asked: fields.AgentNoteFields, _peer: Peer) -> Mapping[str, object]:
        """Note that the agent accepts the handoff that started it; return what the handoff expects."""
        host, _ = await self._find(asked)
        _check_text("note", asked.note)
        session = await host.ask(inputs.AcceptSaid(asked.leg, asked.note))
        return {"accepted": _render_own(session, asked.leg)}

    async def close(self, asked: fields.AgentVerdictFields, peer: Peer) -> Mapping[str, object]:
        """Record that the handoff that started the agent succeeded or failed, or that it is rejected.

        The user's check commands are run before it is completed; what the agent itself proposed never is.
        """
        host, _ = await self._find(asked)
        known = (*VERDICTS, REJECTED)
        if asked.verdict not in known:
            raise WrongUseError(f"unknown verdict {asked.verdict[:40]!r}", hint=f"Known: {', '.join(known)}")
        _check_text("note", asked.note)
        if asked.verdict == REJECTED and not asked.note.strip():
            raise WrongUseError("a rejection needs a note: why you do not take it over")
        report, own = build_report(asked.report), find_own_handoff(host.session, asked.leg)
        is_checked = asked.verdict == "completed" and own is not None
        checked = await self._judge.check(host, own.id) if own is not None and is_checked else ()
        asker = await find_tool_user(peer)
        said = inputs.VerdictSaid(asked.leg, asked.verdict, asked.note, report, checked, asker)
        session = await host.ask(said)
        judged = inputs.CloseAsked(
            own.id if own is not None else "", asked.verdict, by=session.agent, report=report, checked=checked
        )
        message = _render_follow_up(session, asked.verdict)
        return {
            "handoff": judged.handoff,
            "verdict": asked.verdict,
            "asked_for": _render_request(session),
            **render_judged(
                session, judged, message=message, anyway="Mend it and call complete again, or fail"
            ),
        }

    async def note(self, asked: fields.AgentCheckpointFields, _peer: Peer) -> Mapping[str, object]:
        """Save the agent's note on its work for the agent that takes over."""
        host, _ = await self._find(asked)
        if not asked.note.strip():
            raise WrongUseError("a checkpoint needs a note: what is done, and what is half done")
        for name, text in (("note", asked.note), ("next_step", asked.next_step)):
            _check_text(name, text)
        await host.ask(inputs.NoteSaid(asked.leg, asked.note.strip(), asked.next_step.strip()))
        return {
            "kept": True,
            "message": "The next agent to take over will read this, whatever stops your work.",
        }

    async def _find(self, asked: fields.AgentFields) -> tuple[Host, LegMonitor]:
        """Return session and leg of the agent that asks; raise WrongUseError unless it is at work there.

        A daemon that has just been started may still be taking over the leg: that is waited for.
        """
        for host in self._sessions:
            leg = host.session.living_leg
            if leg is None or leg.id != asked.leg:
                continue
            live = await host.runner.await_live(leg.id, limit_s=_TAKE_OVER_S)
            token = live.launch_environment.values.get(LEG_TOKEN, "") if live is not None else ""
            if (
                live is not None
                and token
                and secrets.compare_digest(token.encode(), asked.token.encode(errors="replace"))
            ):
                return host, live
        raise WrongUseError(_REFUSED, hint=_HINT)


def _render_context(reading: Reading | None, mode: str) -> dict[str, object] | None:
    """Return how full the context is; `mode` is what the user wants to follow from that."""
    if reading is None:
        return None
    percent = 100 * reading.used // reading.room if reading.room > 0 else None
    return {"used": reading.used, "room": reading.room, "percent_full": percent, "mode": mode}


def _check_lengths(asked: fields.AgentHandoffFields) -> None:
    texts = {name: getattr(asked, name) for name in (*_NEEDED, "repo", "branch", "history_summary")}
    for name, text in texts.items():
        _check_text(name, text)
    if len(asked.files) > _MOST_FILES or len(asked.blockers) > _MOST_BLOCKERS:
        raise WrongUseError(f"a handoff takes at most {_MOST_FILES} files and {_MOST_BLOCKERS} blockers")
    for text in (*asked.blockers, *(part for one in asked.files for part in (one.path, one.lines, one.note))):
        _check_text("files and blockers", text, most=1000)


def _check_text(name: str, text: str, *, most: int = _LONGEST) -> None:
    if len(text) > most:
        raise WrongUseError(f"{name} is longer than {most} characters", hint="Put the rest into a file")


def _parse_priority(text: str) -> str:
    priority = _PRIORITIES.get(text, text)
    if priority and priority not in PRIORITIES:
        raise WrongUseError(f"there is no priority {text[:40]!r}", hint=f"Known: {', '.join(PRIORITIES)}")
    return priority


def _build_payload(
    asked: fields.AgentHandoffFields, session: Session, agent: str, priority: str
) -> dict[str, object]:
    files = [{"path": one.path, "lines": one.lines or None, "note": one.note or None} for one in asked.files]
    return {
        "to": agent,
        "from": session.agent,
        "task": {
            "title": asked.title.strip(),
            "intent": asked.intent.strip(),
            "priority": _AIRC_PRIORITIES.get(priority, priority),
        },
        "context": {
            "repo": asked.repo or None,
            "branch": asked.branch or None,
            "files": files,
            "current_state": asked.current_state.strip(),
            "next_step": asked.next_step.strip(),
            "blockers": list(asked.blockers),
        },
        "history": {"summary": asked.history_summary},
    }


def _render_request(session: Session) -> dict[str, object] | None:
    request = session.request
    if request is None:
        return None
    return {"handoff": request.id, "to": request.to_agent, "title": request.title}


def _render_own(session: Session, leg: str) -> dict[str, object] | None:
    """Return the handoff that started the agent, and what it expects; `None` if none did."""
    own = find_own_handoff(session, leg)
    return None if own is None else _render_handoff(own, is_accepted=own.id in session.accepted)


def _render_handoff(handoff: Handoff, *, is_accepted: bool) -> dict[str, object]:
    terms = handoff.terms
    return {
        "handoff": handoff.id,
        "from": handoff.from_agent,
        "reason": handoff.reason,
        "accepted": is_accepted,
        "deliverables": list(terms.deliverables),
        "acceptance_criteria": list(terms.criteria),
        "checks": list(terms.checks),
        "constraints": list(terms.constraints),
        "priority": terms.priority,
        "rollback": terms.rollback,
        "questions": list(terms.questions),
    }


def _render_follow_up(session: Session, verdict: str) -> str:
    if session.request is not None:
        return f"{session.request.to_agent} takes over when this turn is over: end it now"
    if verdict == REJECTED:
        return "Recorded. No other agent takes over by itself: tell the user why, and call handoff or plan."
    return "Recorded."


def _render_record(record: HandoffRecord) -> dict[str, object]:
    return {
        "handoff": record.id,
        "from": record.from_agent,
        "to": record.to_agent,
        "status": record.status.value,
        "reason": record.reason,
        "why": record.why,
        "priority": record.terms.priority,
        "began_at": record.began_at.isoformat(),
        "ended_at": record.ended_at.isoformat() if record.ended_at else "",
        "note": record.note,
    }
