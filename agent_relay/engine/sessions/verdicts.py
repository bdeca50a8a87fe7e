"""Judge a handoff for people and agents: run its commands, and say what is known of its criteria.

Each command runs in the session's tree, in a Unix session of its own, with the user's environment, a time
limit and bounded output. No process of it is left when its criterion has been judged, nor soon after this
daemon ended, however that was.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from agent_relay.agents.launch import OWN_PREFIX
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.work import CriterionChecked
from agent_relay.domain.inputs import CloseAsked
from agent_relay.domain.names import CHECK_VARIABLE
from agent_relay.domain.protocol.handoff_report import LONGEST_OUTPUT, RELAY, CriterionVerdict
from agent_relay.domain.session import Session
from agent_relay.domain.text.plain import clean_text
from agent_relay.engine.narrative_writer import RunFolders
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.handoff_requests import find_handoff
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.threads import finish, wait_or_cancel
from agent_relay.redact.rules import PLACEHOLDER
from agent_relay.session.handoff_history import render_evidence
from agent_relay.session.interventions import list_evidence, list_unmet
from agent_relay.session.views import messages
from agent_relay.system.headless import run_headless
from agent_relay.system.processes import end_marked

_LIMIT_S = 300
"""The default time limit of a command, in seconds."""
_FOLDER = "checks"
_SHELL = "/bin/sh"
_MARGIN = 4000
"""Characters of output searched for secrets beyond what is kept: no rule recognises half a secret."""


class HandoffJudge:
    """Runs the commands that are criteria of handoffs, for people and agents alike.

    Those of one handoff run one after another. Use it from the event loop only.
    """

    def __init__(self, services: Services) -> None:
        self._folders = RunFolders(services, _FOLDER)
        self._runs: dict[str, asyncio.Task[tuple[CriterionChecked, ...]]] = {}

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

        Without `environ` they get what the session's agent was started from. Raises WrongUseError if those of
        this handoff run already, or were cancelled.
        """
        session = host.session
        handoff = find_handoff(session, handoff_id)
        if handoff is None or handoff_id in session.closed:
            return ()
        commands = (*handoff.terms.checks, *(handoff.terms.proposed_checks if run_proposed else ()))
        if not commands:
            return ()
        if handoff_id in self._runs:
            raise WrongUseError(f"the criteria of handoff {handoff_id} are being checked already")
        leg = session.living_leg
        given = environ or host.runner.get_launch_environment(leg.id if leg is not None else "").environ
        marked = {name: value for name, value in given.items() if not name.startswith(OWN_PREFIX)}
        marked[CHECK_VARIABLE] = handoff_id
        work = _check_all(
            self._folders, handoff_id, commands, cwd=session.cwd, environ=marked, limit_s=limit_s or _LIMIT_S
        )
        run = asyncio.create_task(work, name="check criteria")
        self._runs[handoff_id] = run
        try:
            await wait_or_cancel(run)
        finally:
            del self._runs[handoff_id]
        if run.cancelled():
            raise WrongUseError(
                f"checking handoff {handoff_id} was cancelled", hint="It is still open: try again"
            )
        return run.result()

    def cancel(self, handoff_id: str) -> bool:
        """End the command that checks a criterion of the handoff; return whether there was one."""
        run = self._runs.get(handoff_id)
        return run is not None and run.cancel()


async def _check_all(
    folders: RunFolders,
    handoff: str,
    commands: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    limit_s: float,
) -> tuple[CriterionChecked, ...]:
    found = []
    for command in commands:
        if PLACEHOLDER in command:
            how = "not run: the secret in it is not kept on disk"
            found.append(CriterionChecked(handoff, command, CriterionVerdict.UNCHECKED, how, RELAY))
            continue
        # A daemon that was killed may have left the same command running.
        await finish(end_marked, CHECK_VARIABLE, handoff)
        async with folders.open() as folder:
            try:
                found.append(
                    await _check(handoff, command, folder, cwd=cwd, environ=environ, limit_s=limit_s)
                )
            finally:
                await finish(end_marked, CHECK_VARIABLE, handoff)
    return tuple(found)


async def _check(
    handoff: str, command: str, folder: str, *, cwd: str, environ: Mapping[str, str], limit_s: float
) -> CriterionChecked:
    began = time.monotonic()
    try:
        ran = await run_headless(
            [_SHELL, "-c", command], env=environ, cwd=cwd, folder=folder, text="", limit_s=limit_s
        )
    except RelayError as error:
        why = error.sentence.replace("no answer came", "not done")
        return CriterionChecked(handoff, command, CriterionVerdict.UNMET, f"run: {why}", RELAY)
    took_s = time.monotonic() - began
    verdict = CriterionVerdict.UNMET if ran.status else CriterionVerdict.MET
    printed = clean_text(f"{ran.output[-_MARGIN:]}\n{ran.errors[-_MARGIN:]}".strip())
    return CriterionChecked(
        handoff,
        command,
        verdict,
        f"run: exit status {ran.status} after {took_s:.1f} s",
        RELAY,
        printed[-LONGEST_OUTPUT - _MARGIN :],
    )


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
