"""The requests about handoffs as records: plan, cancel, retry, and say what came of one."""

from collections.abc import Mapping

from agent_relay.app.legs import Luggage
from agent_relay.app.sessions import Sessions
from agent_relay.domain.effect import CancelAsked, CloseAsked, RetryAsked
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.serving import Handler, Peer, Request
from agent_relay.domain.session import Session
from agent_relay.domain.terms import PRIORITIES, Terms
from agent_relay.logic.intervention import VERDICTS
from agent_relay.logic.planning import build_plan
from agent_relay.logic.wording import render_intervention

_MOST = 20
_LONGEST = 2000
"""A handoff's expectations are read by people and agents: twenty pages are a file of their own."""


def build_handoff_handlers(sessions: Sessions) -> Mapping[str, Handler]:
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
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def plan(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Return whom a handoff would go to now, and why not to the others; nothing is changed."""
        room = await self._sessions.take_up(request.text("session"), _pack(request))
        world = await room.stage.build_world(room.session)
        return build_plan(room.session, world, needs=_read_texts(request, "needs"))

    async def cancel(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Cancel the handoff; return how the session stands."""
        handoff = request.text("handoff")
        room = self._sessions.get(request.text("session"))
        return _tell(await room.host.ask(CancelAsked(handoff, request.text("note", ""))), handoff)

    async def retry(self, request: Request, _peer: Peer) -> Mapping[str, object]:
        """Start the handoff again from where it stopped; return how the session stands."""
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


def _pack(request: Request) -> Luggage:
    return Luggage(request.mapping("env"))


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
