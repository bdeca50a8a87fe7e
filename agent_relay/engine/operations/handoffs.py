"""The operations on handoffs: plan, cancel, retry, close, and have a handoff document written."""

from collections.abc import Mapping

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import CancelAsked, CloseAsked, RetryAsked
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.requests import Handler, Peer
from agent_relay.domain.session import PRIORITIES, Session, Terms
from agent_relay.engine.legs.launch_environment import LaunchEnvironment
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.sessions.lifecycle import take_up
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.session.handoff.interventions import VERDICTS, build_handoff_plan
from agent_relay.session.views.messages import render_intervention

_MOST = 20
_LONGEST = 2000
"""A handoff's expectations are read by people and agents: twenty pages belong in a file."""


def build_handoff_handlers(sessions: SessionRegistry) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    handlers = _HandoffHandlers(sessions)
    return dict(
        (
            op.HANDOFF_PLAN.performed_by(handlers.plan),
            op.HANDOFF_CANCEL.performed_by(handlers.cancel),
            op.HANDOFF_RETRY.performed_by(handlers.retry),
            op.HANDOFF_CLOSE.performed_by(handlers.close),
        )
    )


def build_terms(asked: op.TermsFields, *, target: str) -> Terms:
    """Return what the request expects of a handoff to `target`; raise WrongUseError for contradictions."""
    terms = Terms(
        deliverables=_strip_texts("expect", asked.expect),
        criteria=_strip_texts("accept", asked.accept),
        constraints=_strip_texts("constraint", asked.constraint),
        priority=asked.priority,
        needs=_strip_texts("needs", asked.needs),
        rollback=asked.rollback,
        questions=_strip_texts("question", asked.question),
    )
    if terms.priority and terms.priority not in PRIORITIES:
        raise WrongUseError(
            f"there is no priority {terms.priority[:40]!r}", hint=f"Known: {', '.join(PRIORITIES)}"
        )
    if terms.questions and not terms.rollback:
        raise WrongUseError(
            "the questions have nobody to answer them", hint="Name who does: --rollback AGENT"
        )
    if terms.rollback and terms.rollback == target:
        raise WrongUseError(f"{target} cannot be its own rollback agent", hint="Name another one")
    return terms


def _strip_texts(name: str, given: tuple[str, ...]) -> tuple[str, ...]:
    texts = tuple(text.strip() for text in given if text.strip())
    if len(texts) > _MOST or any(len(text) > _LONGEST for text in texts):
        raise WrongUseError(
            f"--{name} takes {_MOST} texts of {_LONGEST} characters at most", hint="Put the rest into a file"
        )
    return texts


class _HandoffHandlers:
    def __init__(self, sessions: SessionRegistry) -> None:
        self._sessions = sessions

    async def plan(self, asked: op.PlanFields, _peer: Peer) -> Mapping[str, object]:
        """Return to whom a handoff would go now, and why not to the others; change nothing."""
        host = await take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        context = await host.runner.build_context(host.session)
        return build_handoff_plan(host.session, context, needs=_strip_texts("needs", asked.needs))

    async def cancel(self, asked: op.HandoffFields, _peer: Peer) -> Mapping[str, object]:
        """Cancel the handoff; return the session's state."""
        host = self._sessions.get(asked.session)
        return _render_answer(await host.ask(CancelAsked(asked.handoff, asked.note)), asked.handoff)

    async def retry(self, asked: op.RetryFields, _peer: Peer) -> Mapping[str, object]:
        """Start the handoff again from where it stopped; return the session's state."""
        host = await take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        return _render_answer(await host.ask(RetryAsked(asked.handoff, force=asked.yes)), asked.handoff)

    async def close(self, asked: op.CloseFields, _peer: Peer) -> Mapping[str, object]:
        """Note that the handoff succeeded or failed, which may begin one to its rollback agent."""
        if asked.verdict not in VERDICTS:
            raise WrongUseError(
                f"unknown verdict {asked.verdict[:40]!r}", hint=f"Known: {', '.join(VERDICTS)}"
            )
        host = await take_up(self._sessions, asked.session, LaunchEnvironment(asked.env))
        closing = CloseAsked(asked.handoff, asked.verdict, asked.note)
        return _render_answer(await host.ask(closing), asked.handoff)


def _render_answer(session: Session, handoff: str) -> Mapping[str, object]:
    current = session.handoff
    return {
        "session": session.id,
        "handoff": handoff,
        "state": session.shown_state.value,
        "agent": session.agent,
        "under_way": current.id if current is not None else "",
        "message": render_intervention(session, handoff),
    }


def build_narrate_handlers(sessions: SessionRegistry, narratives: NarrativeWriter) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""

    async def narrate(asked: op.NarrateFields, _peer: Peer) -> Mapping[str, object]:
        """Have a document written; return its `outcome`, the `message` for the user, and its `text`."""
        if asked.env is not None:
            # Between two headless turns nobody has it at work, and nothing holds the user's environment.
            await take_up(sessions, asked.session, LaunchEnvironment(asked.env))
        host = sessions.get(asked.session)
        leg = host.session.leg
        launch_environment = host.runner.get_launch_environment(leg.id if leg is not None else "")
        result = await narratives.narrate(host.session, launch_environment, asked.focus)
        return {"outcome": result.kind.value, "message": result.message, "text": result.text}

    async def cancel(asked: op.SessionFields, _peer: Peer) -> Mapping[str, object]:
        """Cancel the document that is being written; return whether there was one."""
        return {"cancelled": narratives.cancel(sessions.get(asked.session).session.id)}

    return dict((op.NARRATE.performed_by(narrate), op.NARRATE_CANCEL.performed_by(cancel)))
