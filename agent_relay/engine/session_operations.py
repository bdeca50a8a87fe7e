"""Answer the operations on sessions and handoffs: open, hand over, stop, list, plan, cancel, retry."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from agent_relay.agents.user_choices import chooses_session
from agent_relay.detect.window_usage import render_windows
from agent_relay.domain import inputs
from agent_relay.domain.errors import TurnOverError, WrongUseError
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.operations import Handler, Peer
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.plain import capitalize
from agent_relay.domain.values import NOBODY, AgentName, replace
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.publishing.limited_work import redact_request
from agent_relay.engine.services import LaunchEnvironment
from agent_relay.engine.sessions import commands
from agent_relay.engine.sessions.asking_process import find_asker, name_speaker
from agent_relay.engine.sessions.creation import OpenRequest, find_requested_root
from agent_relay.engine.sessions.handoff_requests import (
    build_report,
    build_terms,
    clean_line,
    strip_texts,
)
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.native_choices import list_natives
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.sessions.verdicts import HandoffJudge, render_judged
from agent_relay.session.interventions import VERDICTS, build_handoff_plan
from agent_relay.session.views import messages
from agent_relay.session.views.event_lines import list_history
from agent_relay.session.views.waiting import build_rest_view


def _render_answer(session: Session, handoff: str) -> Mapping[str, object]:
    current = session.handoff
    return {
        "session": session.id,
        "handoff": handoff,
        "state": session.shown_state.value,
        "agent": session.agent,
        "under_way": current.id if current is not None else "",
        "message": messages.render_intervention(session, handoff),
    }


async def describe_rest(host: Host) -> Mapping[str, object]:
    """Return what is to be shown of the rest, as the answer's field `rest`; nothing if no agent rests."""
    session = host.session
    if session.state is not State.RESTING and not session.offer:
        return {}
    view = build_rest_view(session, await host.runner.build_context(session))
    return {"rest": view.render()} if view is not None else {}


_CANCELLED_WHY = "cancelled while it was under way"


def build_handlers(
    sessions: SessionRegistry, narratives: NarrativeWriter, judge: HandoffJudge
) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    does = _Handlers(sessions, narratives, judge)
    return dict(
        (
            op.OPEN.performed_by(does.open),
            op.WHERE.performed_by(does.where),
            op.USE.performed_by(does.use),
            op.SESSION_STOP.performed_by(does.stop),
            op.SESSION_LIST.performed_by(does.list),
            op.SESSION_NATIVES.performed_by(does.list_natives),
            op.SESSION_ENVIRONMENT.performed_by(does.bring),
            op.SESSION_HOLD_BACK.performed_by(does.hold_back),
            op.SESSION_HISTORY.performed_by(does.tell_history),
            op.TREE_TAKE.performed_by(does.take_tree),
            op.HANDOFF_PLAN.performed_by(does.plan),
            op.HANDOFF_CANCEL.performed_by(does.cancel),
            op.HANDOFF_RETRY.performed_by(does.retry),
            op.HANDOFF_CLOSE.performed_by(does.close),
            op.HANDOFF_CHECKS_CANCEL.performed_by(does.cancel_checks),
            op.NARRATE.performed_by(does.narrate),
            op.NARRATE_CANCEL.performed_by(does.cancel_narrative),
            op.REST_AGREE.performed_by(does.agree),
            op.REST_GO.performed_by(does.go_on),
        )
    )


class _Handlers:
    def __init__(self, sessions: SessionRegistry, narratives: NarrativeWriter, judge: HandoffJudge) -> None:
        self._sessions = sessions
        self._narratives = narratives
        self._judge = judge

    async def open(self, asked: op.OpenFields, peer: Peer) -> Mapping[str, object]:
        """Find, hand over or begin a session with the agent at work in it."""
        find_own_asker = partial(find_asker, self._sessions, peer)
        agent, _ = await find_own_asker() if asked.check else ("", NOBODY)
        source, _, native = asked.from_.partition(":")
        open_request = OpenRequest(
            agent=asked.agent,
            cwd=asked.cwd,
            environ=asked.env,
            rows=asked.rows,
            cols=asked.cols,
            args=asked.args,
            task=asked.task,
            session=asked.session,
            fresh=asked.new,
            source=source,
            native=native,
            focus=asked.focus,
            digest=asked.digest,
            model=asked.model,
            force=asked.yes,
            launch=not asked.no_launch,
            terms=build_terms(asked, target=asked.agent, environ=asked.env, agent=agent),
        )
        if open_request.launch:
            opened, note = await commands.open_session(self._sessions, open_request, find_own_asker)
            rest = await describe_rest(self._sessions.get(opened.id))
            return {**self._where(opened), "note": note, **rest}
        session, path = await commands.save_packet(self._sessions, open_request)
        return {**self._where(session), "message": messages.render_saved(session, open_request.agent, path)}

    async def where(self, asked: op.SessionFields, _peer: Peer) -> Mapping[str, object]:
        """Return where a session's living leg can be attached, and what the terminal should show."""
        host = await self._sessions.find(asked.session, asked.root)
        note = await commands.find_config_note(self._sessions.services)
        session = await host.look()
        return {**self._where(session), "note": note, **await describe_rest(host)}

    async def use(self, asked: op.UseFields, peer: Peer) -> Mapping[str, object]:
        """Begin a handoff to `agent`; with `turn` only while a headless turn is under way.

        `passed` is whether it was begun.
        """
        host = await self._sessions.find(asked.session, asked.root)
        terms = build_terms(asked, target=asked.agent)
        for name in filter(None, (asked.agent, terms.rollback)):
            self._sessions.services.get_adapter(name)
        focus = await redact_request(asked.focus)
        _, asker = await find_asker(self._sessions, peer)
        wish = inputs.HandoffAsked(
            asked.agent,
            focus=focus,
            force=asked.yes,
            terms=terms,
            digest=asked.digest,
            turn=asked.turn,
            asker=asker,
        )
        try:
            session = await host.ask(wish)
        except TurnOverError:
            return {**self._where(await host.look()), "passed": False}
        return {
            **self._where(session),
            "passed": True,
            "note": await commands.find_config_note(self._sessions.services),
        }

    async def stop(self, asked: op.SessionFields, _peer: Peer) -> Mapping[str, object]:
        """Begin the end of the session; `note` is what keeps it from being journalled."""
        session, note = await commands.stop_session(self._sessions, asked.session, asked.root)
        return {**self._where(session), "note": note}

    async def hold_back(self, asked: op.SessionFields, peer: Peer) -> Mapping[str, object]:
        """Cancel the handoff under way; return whether it was, and what follows or what prevents it."""
        host = await self._sessions.find(asked.session, asked.root)
        handoff = (await host.look()).handoff
        if handoff is None:
            return {"held_back": False, "message": "→ No handoff is under way any more."}
        _, asker = await find_asker(self._sessions, peer)
        try:
            session = await host.ask(inputs.CancelAsked(handoff.id, _CANCELLED_WHY, asker))
        except WrongUseError as error:
            hint = f". {error.hint}" if error.hint else ""
            return {"held_back": False, "message": f"→ {capitalize(error.sentence)}{hint}"}
        return {"held_back": True, "message": messages.render_intervention(session, handoff.id)}

    async def tell_history(self, asked: op.SessionFields, _peer: Peer) -> Mapping[str, object]:
        """Return the history of the session until now, a line for each event that matters."""
        host = await self._sessions.find(asked.session, asked.root)
        session = await host.look()
        # The journal is a line ahead of its session while that line is being written.
        events = tuple(host.events)[: session.number]
        lines = await asyncio.to_thread(list_history, events, self._sessions.services.zone)
        return {"session": session.id, "lines": lines}

    async def bring(self, asked: op.EnvironmentFields, _peer: Peer) -> Mapping[str, object]:
        """Give the session's next agent `env` if the user's environment was lost with daemon and holder."""
        host = await self._sessions.find(asked.session)
        offered = LaunchEnvironment(asked.env, rows=asked.rows, cols=asked.cols)
        return {"taken": host.runner.offer(offered)}

    async def list(self, _asked: Fields, _peer: Peer) -> Mapping[str, object]:
        """Return the sessions at work, and the usage windows agents last reported, in whichever session."""
        await self._sessions.look()
        return {
            "sessions": [self._where(session) for session in self._sessions.at_work()],
            "windows": render_windows(self._sessions.list_windows()),
        }

    async def list_natives(self, asked: op.NativesFields, _peer: Peer) -> Mapping[str, object]:
        """Return the sessions agents keep themselves in a folder, which a start there could go on with."""
        services = self._sessions.services
        loaded = services.adapters.get(AgentName(asked.agent))
        if loaded is not None and chooses_session(loaded.adapter.launch, asked.args):
            return {"sessions": [], "unread": []}
        since = services.clock.now() - timedelta(seconds=asked.within_s) if asked.within_s else None
        look = partial(list_natives, index=services.folders.sessions, since=since)
        rows, unread = await asyncio.to_thread(look, services.adapters, asked.cwd, asked.env)
        return {"sessions": rows, "unread": [{"agent": agent, "why": why} for agent, why in unread]}

    async def take_tree(self, asked: op.TreeFields, _peer: Peer) -> Mapping[str, object]:
        """Claim the working tree of `cwd` for this owner: a person says that the other one is gone."""
        root = await asyncio.to_thread(find_requested_root, asked.cwd)
        await self._sessions.take_over(root)
        return {"root": root}

    async def plan(self, asked: op.HandoffPlanFields, _peer: Peer) -> Mapping[str, object]:
        """Return to whom a handoff would go now, and why not to the others; change nothing."""
        host = await commands.take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        context = await host.runner.build_context(host.session)
        return build_handoff_plan(host.session, context, needs=strip_texts("needs", asked.needs))

    async def cancel(self, asked: op.HandoffFields, peer: Peer) -> Mapping[str, object]:
        """Cancel the handoff; return the session's state."""
        host = self._sessions.get(asked.session)
        _, asker = await find_asker(self._sessions, peer)
        session = await host.ask(inputs.CancelAsked(asked.handoff, asked.note, asker))
        return _render_answer(session, asked.handoff)

    async def retry(self, asked: op.HandoffRetryFields, peer: Peer) -> Mapping[str, object]:
        """Start the handoff again from where it stopped; return the session's state."""
        host = await commands.take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        _, asker = await find_asker(self._sessions, peer)
        session = await host.ask(inputs.RetryAsked(asked.handoff, force=asked.yes, asker=asker))
        return _render_answer(session, asked.handoff)

    async def close(self, asked: op.HandoffVerdictFields, peer: Peer) -> Mapping[str, object]:
        """Check the handoff's criteria, and note that it succeeded or failed: its rollback agent may follow.

        `closed` is whether it was judged: not if it was to be completed and a criterion is unmet.
        """
        if asked.verdict not in VERDICTS:
            raise WrongUseError(
                f"unknown verdict {asked.verdict[:40]!r}", hint=f"Known: {', '.join(VERDICTS)}"
            )
        report, note = build_report(asked.report), clean_line("note", asked.note)
        host = await commands.take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        agent, asker = await find_asker(self._sessions, peer)
        by = name_speaker(host.session, asked) or agent
        if by and (asked.anyway or asked.run_proposed):
            raise WrongUseError(
                f"{by} may not use --anyway or --run-proposed",
                hint="Only a person may: agent-relay handoff complete --anyway, or --run-proposed",
            )
        checked = (
            await self._judge.check(
                host,
                asked.handoff,
                # An agent's variables would decide which program a user's command means.
                environ=None if by else asked.env,
                run_proposed=asked.run_proposed,
                limit_s=asked.check_limit_s,
            )
            if not asked.skip_checks
            else ()
        )
        said = inputs.CloseAsked(asked.handoff, asked.verdict, note, by, report, anyway=asked.anyway)
        closing = replace(said, checked=checked, asker=asker)
        session = await host.ask(closing)
        answer = _render_answer(session, asked.handoff)
        return {
            **answer,
            **render_judged(
                session,
                closing,
                message=str(answer["message"]),
                anyway=f"To complete it anyway: agent-relay handoff complete --anyway {asked.handoff}",
            ),
        }

    async def cancel_checks(self, asked: op.HandoffChecksFields, _peer: Peer) -> Mapping[str, object]:
        """End the command that checks a criterion of the handoff; return whether there was one."""
        return {"cancelled": self._judge.cancel(asked.handoff)}

    async def agree(self, asked: op.RestAgreementFields, peer: Peer) -> Mapping[str, object]:
        """Let work go on by itself when this rest is over; with `agreed` false, do not."""
        host = await self._sessions.find(asked.session)
        _, asker = await find_asker(self._sessions, peer)
        session = await host.ask(inputs.ResumeAsked(asked.agreed, asker))
        return {"session": session.id, "agreed": session.agreed}

    async def go_on(self, asked: op.SessionFields, peer: Peer) -> Mapping[str, object]:
        """Continue the work now, with an agent that is available again."""
        host = await self._sessions.find(asked.session)
        _, asker = await find_asker(self._sessions, peer)
        session = await host.ask(inputs.ContinueAsked(asker))
        return {"session": session.id, "state": session.state.value}

    async def narrate(self, asked: op.NarrateFields, _peer: Peer) -> Mapping[str, object]:
        """Have a document written; return its `outcome`, the `message` for the user, and its `text`."""
        if asked.env is not None:
            # Between two headless turns nobody has it at work, and nothing holds the user's environment.
            await commands.take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        host = self._sessions.get(asked.session)
        leg = host.session.leg
        launch_environment = host.runner.get_launch_environment(leg.id if leg is not None else "")
        result = await self._narratives.narrate(host.session, launch_environment, asked.focus)
        return {"outcome": result.kind.value, "message": result.message, "text": result.text}

    async def cancel_narrative(self, asked: op.SessionFields, _peer: Peer) -> Mapping[str, object]:
        """Cancel the document that is being written; return whether there was one."""
        return {"cancelled": self._narratives.cancel(self._sessions.get(asked.session).session.id)}

    def _where(self, session: Session) -> dict[str, object]:
        leg = session.living_leg
        sign_in = self._sessions.find_sign_in(session.agent)
        has_screen = leg is not None and not leg.headless and leg.child_pid > 0
        attachable = has_screen and session.state is not State.HANDING_OFF
        return {
            "session": session.id,
            "state": session.shown_state.value,
            "agent": session.agent,
            "leg": leg.id if leg is not None and attachable else "",
            "socket": self._sessions.get_socket(leg.id) if leg is not None and attachable else "",
            "headless": session.open_turn is not None,
            "message": messages.render_message(session, self._sessions.services.zone, sign_in=sign_in),
            "folder": messages.session_folder(session),
            "handoff": (session.handoff is not None and session.handoff.step.value) or "",
            "successor": session.handoff.to_agent if session.handoff is not None else "",
            "handoffs": len(session.done),
            "status": session.leg.status if session.leg is not None else -1,
            "refused": session.refusal.text if session.refusal is not None else "",
            "owed": _find_owed(session),
            **self._tell_live(session.id),
        }

    def _tell_live(self, session_id: str) -> dict[str, object]:
        """Return what keeps the session from going on, and its bar; empty for one that was just removed."""
        try:
            host = self._sessions.get(session_id)
        except WrongUseError:
            return {"trouble": "", "bar": []}
        return {"trouble": host.trouble, "bar": list(host.runner.bar.texts)}


def _find_owed(session: Session) -> str:
    """Return the agent that did not work on its packet before the session ended; empty for none."""
    left = session.retriable
    is_owed = session.state is State.ENDED and left is not None and not left.is_cancelled
    return left.to_agent if is_owed and left is not None else ""
