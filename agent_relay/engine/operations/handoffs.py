"""The operations on handoffs: plan, cancel, retry, close, and have a handoff document written."""

from collections.abc import Mapping

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import CancelAsked, CloseAsked, RetryAsked
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.requests import Handler, Peer
from agent_relay.domain.session import PRIORITIES, Session, Terms
from agent_relay.engine.legs.live_leg import LaunchEnvironment
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.sessions.lifecycle import SessionLifecycle
from agent_relay.session.handoff.interventions import VERDICTS, build_handoff_plan
from agent_relay.session.views.messages import render_intervention

_MOST = 20
_LONGEST = 2000
"""A handoff's expectations are read by people and agents: twenty pages belong in a file."""


def build_handoff_handlers(sessions: SessionLifecycle) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    handlers = _Handlers(sessions)
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


class _Handlers:
    def __init__(self, sessions: SessionLifecycle) -> None:
        self._sessions = sessions

    async def plan(self, asked: op.PlanFields, _peer: Peer) -> Mapping[str, object]:
        """Return to whom a handoff would go now, and why not to the others; change nothing."""
        room = await self._sessions.take_up(asked.session, LaunchEnvironment(asked.env))
        world = await room.stage.build_world(room.session)
        return build_handoff_plan(room.session, world, needs=_strip_texts("needs", asked.needs))

    async def cancel(self, asked: op.HandoffFields, _peer: Peer) -> Mapping[str, object]:
        """Cancel the handoff; return the session's state."""
        room = self._sessions.get(asked.session)
        return _tell(await room.host.ask(CancelAsked(asked.handoff, asked.note)), asked.handoff)

    async def retry(self, asked: op.RetryFields, _peer: Peer) -> Mapping[str, object]:
        """Start the handoff again from where it stopped; return the session's state."""
        room = await self._sessions.take_up(asked.session, LaunchEnvironment(asked.env))
        return _tell(await room.host.ask(RetryAsked(asked.handoff, force=asked.yes)), asked.handoff)

    async def close(self, asked: op.CloseFields, _peer: Peer) -> Mapping[str, object]:
        """Note that the handoff succeeded or failed, which may begin one to its rollback agent."""
        if asked.verdict not in VERDICTS:
            raise WrongUseError(
                f"unknown verdict {asked.verdict[:40]!r}", hint=f"Known: {', '.join(VERDICTS)}"
            )
        room = await self._sessions.take_up(asked.session, LaunchEnvironment(asked.env))
        wish = CloseAsked(asked.handoff, asked.verdict, asked.note)
        return _tell(await room.host.ask(wish), asked.handoff)


def _tell(session: Session, handoff: str) -> Mapping[str, object]:
    current = session.handoff
    return {
        "session": session.id,
        "handoff": handoff,
        "state": session.shown_state.value,
        "agent": session.agent,
        "under_way": current.id if current is not None else "",
        "message": render_intervention(session, handoff),
    }


def build_narrate_handlers(sessions: SessionLifecycle, narrating: NarrativeWriter) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""

    async def narrate(asked: op.NarrateFields, _peer: Peer) -> Mapping[str, object]:
        """Have a document written; return its `outcome`, the `message` for the user, and its `text`."""
        if asked.env is not None:
            # Between two headless turns nobody has it at work, and nothing holds the user's environment.
            await sessions.take_up(asked.session, LaunchEnvironment(asked.env))
        room = sessions.get(asked.session)
        leg = room.session.leg
        luggage = room.stage.get_luggage(leg.id if leg is not None else "")
        told = await narrating.narrate(room.session, luggage, asked.focus)
        return {"outcome": told.kind.value, "message": told.message, "text": told.text}

    async def cancel(asked: op.SessionFields, _peer: Peer) -> Mapping[str, object]:
        """Cancel the document that is being written; return whether there was one."""
        return {"cancelled": narrating.cancel(sessions.get(asked.session).session.id)}

    return dict((op.NARRATE.performed_by(narrate), op.NARRATE_CANCEL.performed_by(cancel)))
