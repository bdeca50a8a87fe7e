"""Run the commands that are criteria of a handoff, in the session's tree, and return their results.

Each runs in a Unix session of its own, with the user's environment, a time limit and bounded output. No
process of it is left when its criterion has been judged, nor soon after this daemon ended, however that was.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from agent_relay.agents.launch import OWN_PREFIX
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.work import CriterionChecked
from agent_relay.domain.names import CHECK_VARIABLE
from agent_relay.domain.protocol.handoff_report import LONGEST_OUTPUT, RELAY, CriterionVerdict
from agent_relay.domain.text.plain import clean_text
from agent_relay.engine.narrative_writer import RunFolders, remove_run
from agent_relay.engine.services import Services
from agent_relay.engine.threads import finish
from agent_relay.redact.rules import PLACEHOLDER
from agent_relay.system.headless import run_headless
from agent_relay.system.processes import end_marked

LIMIT_S = 300
"""The default time limit of a command, in seconds."""
_FOLDER = "checks"
_SHELL = "/bin/sh"
_MARGIN = 4000
"""Characters of output searched for secrets beyond what is kept: no rule recognises half a secret."""


class CriteriaChecker:
    """Runs the commands of one handoff at a time. Use it from the event loop only."""

    def __init__(self) -> None:
        self._runs: dict[str, asyncio.Task[tuple[CriterionChecked, ...]]] = {}
        self._folders: RunFolders | None = None

    async def check(
        self,
        services: Services,
        handoff: str,
        commands: Sequence[str],
        *,
        cwd: str,
        environ: Mapping[str, str],
        limit_s: float,
    ) -> tuple[CriterionChecked, ...]:
        """Run the commands one after another; return the result of each.

        Raises WrongUseError if those of this handoff run already, or were cancelled.
        """
        if handoff in self._runs:
            raise WrongUseError(f"the criteria of handoff {handoff} are being checked already")
        if self._folders is None:
            self._folders = RunFolders(services, _FOLDER)
        marked = {name: value for name, value in environ.items() if not name.startswith(OWN_PREFIX)}
        marked[CHECK_VARIABLE] = handoff
        work = _check_all(self._folders, handoff, commands, cwd=cwd, environ=marked, limit_s=limit_s)
        run = asyncio.create_task(work, name="check criteria")
        self._runs[handoff] = run
        try:
            await asyncio.wait({run})
        except asyncio.CancelledError:
            run.cancel()
            await asyncio.wait({run})
            raise
        finally:
            del self._runs[handoff]
        if run.cancelled():
            raise WrongUseError(
                f"checking handoff {handoff} was cancelled", hint="It is still open: try again"
            )
        return run.result()

    def cancel(self, handoff: str) -> bool:
        """End the handoff's running command; return whether there was one."""
        run = self._runs.get(handoff)
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
        folder = await finish(folders.make)
        try:
            found.append(await _check(handoff, command, folder, cwd=cwd, environ=environ, limit_s=limit_s))
        finally:
            await finish(end_marked, CHECK_VARIABLE, handoff)
            await finish(remove_run, folder)
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
