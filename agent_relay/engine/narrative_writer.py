"""Have a session's agent write a handoff document in a fork of its native session, one at a time."""

import asyncio
import contextlib
import logging
import os
import shutil
import threading
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.launch import LaunchPlan, LegStart, prepare_launch
from agent_relay.agents.user_choices import build_server_args
from agent_relay.domain.documents.adapter import Narrative
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.text.plain import replace_signs
from agent_relay.domain.values import Confidential, replace
from agent_relay.engine.publishing.native_records import find_native
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.engine.threads import finish, wait_or_cancel
from agent_relay.packet import narrative
from agent_relay.sources.native_fork import fork_session, remove_fork
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.store.project import make_session_folder
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.headless import run_headless

_log = logging.getLogger(__name__)
_NO_LEG = "document"
"""Value in place of the leg's id in the environment of an agent that relay starts outside of any leg."""
_FOLDER, _DIGESTS = "narratives", "digests"
_ENDED_S = 5.0
"""Longest time a writing agent outlives its daemon, in seconds; then what it leaves is removed."""


def prepare_document_run(
    services: Services,
    loaded: LoadedAdapter,
    leg: Leg,
    start: LegStart,
    *,
    args: Sequence[str],
    native_id: str,
) -> LaunchPlan:
    """Return the launch plan of an agent that writes a document, its files in the start's folder.

    It is the agent's own launch with `args` and the narrative's variables and files, without the user's
    tool servers. Raises RelayError, also if it is not known which servers there are.
    """
    values = {
        "native_id": native_id,
        "leg_folder": start.leg_folder,
        "model": start.model,
        "cwd": start.cwd,
        "home": start.environ.get("HOME", ""),
    }
    spec = loaded.adapter.narrative
    if spec is not None and spec.servers is not None:
        args = (*build_server_args(spec.servers, values, start.environ), *args)
    # Hooks of ours that stand in the agent's own settings are silent in it, as they are in a leg.
    env = {**(spec.env if spec else {}), LEG_VARIABLE: _NO_LEG}
    launch = replace(
        loaded.adapter.launch,
        args=tuple(args),
        env=env,
        files=spec.files if spec else (),
        fresh_args=(),
        resume_args=(),
        packet_args=(),
    )
    headless = replace(loaded, adapter=replace(loaded.adapter, launch=launch))
    return prepare_launch(headless, leg, start, values=values, withheld=services.withheld_keys())


class RunFolders:
    """The private folders of runs that write documents; leftovers of earlier runs are removed."""

    def __init__(self, services: Services, name: str) -> None:
        self._services = services
        self._name = name
        self._is_swept = False
        self._making = threading.Lock()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Yield a private folder for one run; afterwards remove everything of the run."""
        folder = await finish(self._make)
        try:
            yield folder
        finally:
            await finish(_remove_run, folder)

    def _make(self) -> str:
        """Create a private folder; first remove the leftovers of a dead daemon's runs."""
        parent = ensure_private(self._get_parent())
        # A run of another session that starts meanwhile must not lose its folder here.
        with self._making:
            self._sweep(parent)
            return ensure_private(os.path.join(parent, self._services.create_id()))

    def sweep(self) -> None:
        """Remove the leftovers of a dead daemon's runs; what cannot be listed is left to the next run."""
        with self._making, contextlib.suppress(OSError):
            self._sweep(self._get_parent())

    def _get_parent(self) -> str:
        return os.path.join(self._services.folders.runtime, self._name)

    def _sweep(self, parent: str) -> None:
        if not self._is_swept:
            for name in os.listdir(parent):
                _remove_run(os.path.join(parent, name))
            self._is_swept = True


class NarrativeRequest(Confidential, frozen=True):
    """A document to write by the agent of `leg`, with the user's environment and the model they chose."""

    session: Session
    leg: Leg
    environ: Mapping[str, str]
    model: str = ""
    focus: str = ""


class NarrativeWriter:
    """Has agents write handoff documents, one at a time per session. Use it from the event loop only.

    `digest_folders` are for the runs of successors that write one: all sessions share them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs: dict[str, asyncio.Task[narrative.NarrativeResult]] = {}
        self._drafts: set[str] = set()
        self._folders = RunFolders(services, _FOLDER)
        self.digest_folders = RunFolders(services, _DIGESTS)

    async def sweep(self) -> None:
        """Remove what agents that a dead daemon had write left here and in the users' homes.

        It waits for their end first.
        """
        await asyncio.sleep(_ENDED_S)
        for folders in (self._folders, self.digest_folders):
            await asyncio.to_thread(folders.sweep)

    async def narrate(
        self, session: Session, launch_environment: LaunchEnvironment, focus: str = ""
    ) -> narrative.NarrativeResult:
        """Have the session's newest agent write a document, kept for the next packet; return the result.

        A draft that is being written is cancelled. Raises WrongUseError if a document was requested already.
        """
        if session.id in self._drafts:
            self.drop_draft(session.id)
            await self.wait_for_draft(session.id)
        return await self._begin(session, launch_environment, focus)

    async def draft(
        self, session: Session, launch_environment: LaunchEnvironment
    ) -> narrative.NarrativeResult:
        """Do what `narrate` does ahead of time, unrequested; a later request takes precedence."""
        self._drafts.add(session.id)
        try:
            return await self._begin(session, launch_environment, "")
        finally:
            self._drafts.discard(session.id)

    async def wait_for_draft(self, session: str) -> None:
        """Wait until no draft of the session is being written any more."""
        run = self._runs.get(session)
        if run is not None and session in self._drafts:
            await asyncio.wait({run})

    def drop_draft(self, session: str) -> None:
        """Cancel a draft of the session that is being written."""
        if session in self._drafts:
            self.cancel(session)

    async def _begin(
        self, session: Session, launch_environment: LaunchEnvironment, focus: str
    ) -> narrative.NarrativeResult:
        leg = session.leg
        if leg is None:
            return narrative.NarrativeResult(narrative.NarrativeOutcome.NOTHING)
        own = launch_environment.model if launch_environment.agent == leg.agent else ""
        model = leg.model or own or self._services.config.get_agent(leg.agent).model
        occasion = NarrativeRequest(session, leg, launch_environment.environ, model, focus)
        if session.id in self._runs:
            raise WrongUseError("a handoff document of this session is being written already")
        run = asyncio.create_task(self._run(occasion), name="narrate")
        self._runs[session.id] = run
        try:
            await wait_or_cancel(run)
        finally:
            del self._runs[session.id]
        return (
            narrative.NarrativeResult(narrative.NarrativeOutcome.CANCELLED)
            if run.cancelled()
            else run.result()
        )

    def cancel(self, session: str) -> bool:
        """Cancel the document being written; return whether there was one.

        No process of it is left when its requester gets the answer.
        """
        run = self._runs.get(session)
        return run is not None and run.cancel()

    async def close(self) -> None:
        """Cancel all documents being written."""
        runs = list(self._runs.values())
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

    async def _run(self, occasion: NarrativeRequest) -> narrative.NarrativeResult:
        loaded = self._services.get_adapter(occasion.leg.agent)
        spec = loaded.adapter.narrative
        if spec is None:
            return narrative.NarrativeResult(narrative.NarrativeOutcome.UNABLE)
        try:
            result = await self._ask(occasion, loaded, spec)
            return await finish(self._keep, occasion, result) if result.text else result
        except RelayError as error:
            return narrative.fail(error.sentence)

    async def _ask(
        self, occasion: NarrativeRequest, loaded: LoadedAdapter, spec: Narrative
    ) -> narrative.NarrativeResult:
        native = await finish(self._find_native, occasion, loaded)
        if native is None:
            return narrative.NarrativeResult(narrative.NarrativeOutcome.NOTHING)
        async with self._folders.open() as folder:
            plan = await finish(self._prepare, occasion, loaded, spec, native, folder)
            request = narrative.build_request(occasion.focus)
            text = replace_signs(request, loaded.adapter.deliver.packet_escapes)
            cwd, limit_s = occasion.session.cwd, spec.limit_s
            ran = await run_headless(
                plan.argv, env=plan.env, cwd=cwd, folder=folder, text=text, limit_s=limit_s
            )
        return await finish(
            narrative.read_answer, spec.answer, ran.output, status=ran.status, errors=ran.errors
        )

    def _find_native(self, occasion: NarrativeRequest, loaded: LoadedAdapter) -> NativeSession | None:
        """Return the leg's native session if it holds something to hand off, else `None`."""
        leg, spec = occasion.leg, loaded.adapter.transcript
        native = find_native(loaded, occasion.session, leg, occasion.environ)
        if native is None and leg.native_id and os.path.exists(leg.transcript):
            native = NativeSession(leg.transcript, leg.native_id, "", "", leg.starting_at)
        if native is None or spec is None:
            return None
        facts = read_facts(spec.reader, native.path, native_id=native.native_id, agent=leg.agent)
        return native if narrative.has_messages(facts) else None

    def _prepare(
        self,
        occasion: NarrativeRequest,
        loaded: LoadedAdapter,
        spec: Narrative,
        native: NativeSession,
        folder: str,
    ) -> LaunchPlan:
        """Return the launch plan of the fork, its files in `folder`.

        It is the agent's own launch with the narrative's arguments, variables and files.
        """
        native_id = fork_session(native, copy_by=spec.copy_by, folder=folder, fresh_id=str(uuid.uuid4()))
        start = LegStart(folder, occasion.session.cwd, occasion.environ, model=occasion.model)
        return prepare_document_run(
            self._services, loaded, occasion.leg, start, args=spec.args, native_id=native_id
        )

    def _keep(
        self, occasion: NarrativeRequest, result: narrative.NarrativeResult
    ) -> narrative.NarrativeResult:
        """Remove secrets from the document, keep it for the next packet and return it.

        Raises RelayError if it cannot be kept.
        """
        from agent_relay.engine.publishing.packet_pipeline import get_allow
        from agent_relay.redact.text import redact_text
        from agent_relay.store.packets import NarrativeDocument, save_beside_packets, write_narrative

        session, leg, now = occasion.session, occasion.leg, self._services.clock.now()
        known = gather_secrets(session.root, occasion.environ, cwd=session.cwd)
        allow = get_allow(self._services)
        text = redact_text(result.text, known=known, allow=allow).text
        focus = redact_text(occasion.focus, known=known, allow=allow).text
        folder = make_session_folder(session.root, session.id)
        at = now.astimezone(UTC)
        kept = NarrativeDocument(leg.id, leg.agent, f"{at:%Y-%m-%d %H:%M} UTC", focus, text, at.isoformat())
        write_narrative(folder, kept)
        if self._services.config.handoff.save_to_disk:
            try:
                save_beside_packets(folder, text, at)
            except RelayError as error:
                _log.warning("handoff-not-saved session=%s why=%s", session.id, error.sentence)
        return narrative.NarrativeResult(result.kind, text)


def _remove_run(folder: str) -> None:
    """Remove everything of a run, in its folder and beside the agent's own sessions."""
    remove_fork(folder)
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
