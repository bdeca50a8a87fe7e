"""The operations on handoffs: plan, cancel, retry, close, and have a handoff document written."""

from collections.abc import Mapping

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import CancelAsked, CloseAsked, RetryAsked
from agent_relay.domain.protocol.requests import Handler, Peer, Request
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
    return {
        "handoff.plan": handlers.plan,
        "handoff.cancel": handlers.cancel,
        "handoff.retry": handlers.retry,
        "handoff.close": handlers.close,
    }


def parse_terms(request: Request, *, target: str) -> Terms:
    """Return what the request expects of a handoff to `target`; raise WrongUseError for contradictions."""
    terms = Terms(
        deliverables=_read_texts(request, "expect"),
        criteria=_read_texts(request, "accept"),
        constraints=_read_texts(request, "constraint"),
        priority=request.text("priority", ""),
        needs=_read_texts(request, "needs"),
        rollback=request.text("rollback", ""),
        questions=_read_texts(request, "question"),
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


def _read_texts(request: Request, name: str) -> tuple[str, ...]:
    texts = tuple(text.strip() for text in request.texts(name) if text.strip())
    if len(texts) > _MOST or any(len(text) > _LONGEST for text in texts):
        raise WrongUseError(
            f"--{name} takes {_MOST} texts of {_LONGEST} characters at most", hint="Put the rest into a file"
        )
    return texts


class _Handlers:
    def __init__(self, sessions: SessionLifecycle) -> None:
        self._sessions = sessions

    async def plan(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Return to whom a handoff would go now, and why not to the others; change nothing."""
        room = await self._sessions.take_up(request.text("session"), _pack(request))
        world = await room.stage.build_world(room.session)
        return build_handoff_plan(room.session, world, needs=_read_texts(request, "needs"))

    async def cancel(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Cancel the handoff; return the session's state."""
        handoff = request.text("handoff")
        room = self._sessions.get(request.text("session"))
        return _tell(await room.host.ask(CancelAsked(handoff, request.text("note", ""))), handoff)

    async def retry(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Start the handoff again from where it stopped; return the session's state."""
        handoff = request.text("handoff")
        room = await self._sessions.take_up(request.text("session"), _pack(request))
        return _tell(await room.host.ask(RetryAsked(handoff, force=request.flag("yes"))), handoff)

    async def close(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Note that the handoff succeeded or failed, which may begin one to its rollback agent."""
        handoff, verdict = request.text("handoff"), request.text("verdict")
        if verdict not in VERDICTS:
            raise WrongUseError(f"there is no verdict {verdict[:40]!r}", hint=f"Known: {', '.join(VERDICTS)}")
        room = await self._sessions.take_up(request.text("session"), _pack(request))
        return _tell(await room.host.ask(CloseAsked(handoff, verdict, request.text("note", ""))), handoff)


def _pack(request: Request) -> LaunchEnvironment:
    return LaunchEnvironment(request.mapping("env"))


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

    async def narrate(request: Request, _peer: Peer) -> Mapping[str, object]:
        """Have a document written; return its `outcome`, the `message` for the user, and its `text`."""
        session = request.text("session")
        if "env" in request.fields:
            # Between two headless turns nobody has it at work, and nothing holds the user's environment.
            await sessions.take_up(session, LaunchEnvironment(request.mapping("env")))
        room = sessions.get(session)
        leg = room.session.leg
        luggage = room.stage.get_luggage(leg.id if leg is not None else "")
        told = await narrating.narrate(room.session, luggage, request.text("focus", ""))
        return {"outcome": told.kind.value, "message": told.message, "text": told.text}

    async def cancel(request: Request, _peer: Peer) -> Mapping[str, object]:
        """Cancel the document that is being written; return whether there was one."""
        return {"cancelled": narrating.cancel(sessions.get(request.text("session")).session.id)}

    return {"narrate": narrate, "narrate.cancel": cancel}
