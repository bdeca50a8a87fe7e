"""Judge a handoff for people and agents: run its commands, and say what is known of its criteria."""

from collections.abc import Mapping

from agent_relay.domain.events.work import CriterionChecked
from agent_relay.domain.inputs import CloseAsked
from agent_relay.domain.session import Session
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.criteria_checks import LIMIT_S, CriteriaChecker
from agent_relay.engine.sessions.handoff_requests import find_handoff
from agent_relay.engine.sessions.host import Host
from agent_relay.session.handoff_history import render_evidence
from agent_relay.session.interventions import list_evidence, list_unmet
from agent_relay.session.views import messages


class HandoffJudge:
    """Runs the commands that are criteria of handoffs, for people and agents alike."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._checker = CriteriaChecker()

    async def check(
        self,
        host: Host,
        handoff_id: str,
        *,
        environ: Mapping[str, str] | None = None,
        run_proposed: bool = False,
        limit_s: float = 0,
    ) -> tuple[CriterionChecked, ...]:
        """Run the handoff's commands, those an agent proposed only with `run_proposed`; return the results.

        Without `environ` they get what the session's agent was started from.
        """
        session = host.session
        handoff = find_handoff(session, handoff_id)
        if handoff is None or handoff_id in session.closed:
            return ()
        commands = (*handoff.terms.checks, *(handoff.terms.proposed_checks if run_proposed else ()))
        if not commands:
            return ()
        leg = session.living_leg
        return await self._checker.check(
            self._services,
            handoff.id,
            commands,
            cwd=session.cwd,
            environ=environ or host.runner.get_launch_environment(leg.id if leg is not None else "").environ,
            limit_s=limit_s or LIMIT_S,
        )

    def cancel(self, handoff_id: str) -> bool:
        """End the command that checks a criterion of the handoff; return whether there was one."""
        return self._checker.cancel(handoff_id)


def render_judged(session: Session, closing: CloseAsked, *, message: str, anyway: str) -> dict[str, object]:
    """Return whether the handoff is `closed` now, its `criteria`, and the `message`.

    If it was to be completed and stays open, the message names the unmet criteria and ends with `anyway`.
    """
    handoff = find_handoff(session, closing.handoff)
    evidence = list_evidence(handoff, closing) if handoff is not None else ()
    is_closed = closing.handoff in session.closed
    if closing.verdict == "completed" and not is_closed:
        message = messages.render_unmet(closing.handoff, list_unmet(evidence), anyway)
    return {
        "closed": is_closed,
        "criteria": [render_evidence(one) for one in evidence],
        "message": message,
    }
