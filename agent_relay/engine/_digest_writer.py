"""Have the successor of a handoff write a document from relay's record before its first turn.

It gets no tools for this, and the outgoing agent is not involved. If the document cannot be written for any
reason, the handoff goes on without it.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC

import msgspec

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.launch import LaunchPlan, LegStart
from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.adapter import Narrative
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import DigestBegun, DigestEnded
from agent_relay.domain.session import Handoff, Session
from agent_relay.domain.text.plain import replace_signs
from agent_relay.engine.narrative_writer import RunFolders, prepare_document_run
from agent_relay.engine.services import LaunchEnvironment, Services, SessionHost
from agent_relay.engine.threads import finish, finish_or_end, wait_or_cancel
from agent_relay.packet import narrative
from agent_relay.packet.narrative import NarrativeOutcome, NarrativeResult, read_records
from agent_relay.session.decision import Outcome
from agent_relay.session.turns.output import read_record
from agent_relay.sources.native_fork import expect_session
from agent_relay.store.project import make_session_folder
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.headless import run_headless

_log = logging.getLogger(__name__)
_KINDS = ("input", "cached", "cache_write", "output", "reasoning")
_GIVEN_UP = "agent-relay ended while it was written"

BuildDigest = Callable[[Session, Handoff, Mapping[str, str]], str]
"""Builds the digest in a limited process; empty if there is none. Runs in a thread; raises RelayError."""


class _Request(msgspec.Struct, frozen=True):
    """A requested document: its handoff, its agent, the user's environment and the model they chose."""

    handoff: Handoff
    loaded: LoadedAdapter
    spec: Narrative
    environ: Mapping[str, str]
    model: str


class DigestWriter:
    """The writer of documents by the successors of one session. Use it from the event loop only."""

    def __init__(
        self,
        services: Services,
        host: SessionHost,
        folders: RunFolders,
        build: BuildDigest,
        *,
        end: Callable[[], None],
    ) -> None:
        """Make the writer for the host's session; `end` ends a `build` that is no longer needed.

        All sessions share `folders`.
        """
        self._services = services
        self._host = host
        self._build = build
        self._end_build = end
        self._folders = folders
        self._run: asyncio.Task[NarrativeResult] | None = None
        self._tokens: dict[str, int] = {}

    async def write(self, handoff: Handoff, launch_environment: LaunchEnvironment) -> None:
        """Have the handoff's successor write the document, if one is wanted, for the handoff's packet.

        It is requested only once: a request that an earlier daemon did not finish counts as failed. Raises
        RelayError only if the journal cannot be written.
        """
        request = self._find_request(handoff, launch_environment)
        told = [event.body for event in self._host.events if _is_about(event.body, handoff.id)]
        if request is None or any(isinstance(body, DigestEnded) for body in told):
            return
        if told:
            await self._end(request, await finish(self._find_kept, handoff))
            return
        await self._host.ask(Outcome((DigestBegun(handoff.id, handoff.to_agent),)))
        self._tokens = {}
        self._run = asyncio.create_task(self._ask(request), name="digest")
        await wait_or_cancel(self._run)
        run, self._run = self._run, None
        await self._end(
            request, NarrativeResult(NarrativeOutcome.CANCELLED) if run.cancelled() else run.result()
        )

    def _find_kept(self, handoff: Handoff) -> NarrativeResult:
        """Return the outcome of a document that another daemon began: one it kept is in the packet."""
        from agent_relay.store.packets import read_digest

        kept = read_digest(make_session_folder(self._host.session.root, self._host.session.id), handoff.id)
        return NarrativeResult(NarrativeOutcome.WRITTEN, kept.text) if kept else narrative.fail(_GIVEN_UP)

    def see(self, session: Session) -> None:
        """Cancel the document being written if its handoff was given up."""
        handoff = session.handoff
        if self._run is not None and (handoff is None or handoff.is_cancelled):
            self._run.cancel()

    def _find_request(self, handoff: Handoff, launch_environment: LaunchEnvironment) -> _Request | None:
        settings = self._services.config
        if handoff.is_cancelled or not (handoff.digest or settings.handoff.digest == "successor"):
            return None
        try:
            loaded = self._services.get_adapter(handoff.to_agent)
        except RelayError:
            return None
        spec = loaded.adapter.narrative
        if spec is None or not spec.fresh_args:
            _log.warning("no-digest session=%s why=unable", self._host.session.id)
            return None
        own = launch_environment.model if launch_environment.agent == handoff.to_agent else ""
        model = handoff.model or own or settings.get_agent(handoff.to_agent).model
        return _Request(handoff, loaded, spec, launch_environment.environ, model)

    async def _end(self, request: _Request, result: NarrativeResult) -> None:
        level = logging.INFO if result.kind is NarrativeOutcome.WRITTEN else logging.WARNING
        _log.log(level, "digest session=%s outcome=%s", self._host.session.id, result.kind.value)
        handoff = request.handoff
        ended = DigestEnded(
            handoff.id,
            handoff.to_agent,
            result.kind.value,
            result.why,
            model=request.model,
            **{kind: self._tokens.get(kind, 0) for kind in _KINDS},
        )
        await self._host.ask(Outcome((ended,)))

    async def _ask(self, request: _Request) -> NarrativeResult:
        """Request the document and keep it; return the result, failures included."""
        limit_s = min(request.spec.limit_s, self._services.config.handoff.digest_limit_s)
        try:
            async with asyncio.timeout(limit_s):
                session, handoff = self._host.session, request.handoff
                digest = await finish_or_end(self._end_build, self._build, session, handoff, request.environ)
                if not digest:
                    return NarrativeResult(NarrativeOutcome.NOTHING, why="there is nothing to write about")
                result = await self._run_agent(request, digest, limit_s)
            return await finish(self._keep, request, result, digest) if result.text else result
        except TimeoutError:
            return narrative.fail(f"no answer came within {limit_s:g} s")
        except RelayError as error:
            return narrative.fail(error.sentence)
        except (RuntimeError, OSError) as error:
            # Most likely caused by an unforeseen record: a handoff must not depend on what agents write.
            self._services.report(error)
            return narrative.fail("agent-relay made a mistake with it; a crash report was written")

    async def _run_agent(self, request: _Request, digest: str, limit_s: float) -> NarrativeResult:
        session, spec = self._host.session, request.spec
        escapes = {**request.loaded.adapter.deliver.packet_escapes, **spec.escapes}
        async with self._folders.open() as folder:
            native_id = str(uuid.uuid4())
            start = LegStart(folder, session.cwd, request.environ, model=request.model)
            plan = await finish(self._prepare, request, start, native_id)
            text = replace_signs(narrative.build_digest_request(digest, request.handoff.focus), escapes)
            ran = await run_headless(
                plan.argv, env=plan.env, cwd=session.cwd, folder=folder, text=text, limit_s=limit_s
            )
        # An agent may print 16 MiB, and all sessions share the event loop.
        self._tokens = await finish(_read_tokens, request, ran.output)
        result = await finish(
            narrative.read_answer, spec.answer, ran.output, status=ran.status, errors=ran.errors
        )
        answer = replace_signs(result.text, {escaped: sign for sign, escaped in escapes.items()})
        return NarrativeResult(result.kind, answer, result.why)

    def _prepare(self, request: _Request, start: LegStart, native_id: str) -> LaunchPlan:
        """Return the plan of the run; note the session that the agent will leave behind, if it must."""
        leg = next(leg for leg in self._host.session.legs if leg.id == request.handoff.from_leg)
        plan = prepare_document_run(
            self._services, request.loaded, leg, start, args=request.spec.fresh_args, native_id=native_id
        )
        transcript = request.loaded.adapter.transcript
        if request.spec.copy_by == "beside" and transcript is not None:
            values = {"home": request.environ.get("HOME", ""), "cwd": start.cwd}
            root = fill_text(transcript.folder, values, plan.env)
            if root is not None:
                expect_session(start.leg_folder, root, transcript.pattern, native_id)
        return plan

    def _keep(self, request: _Request, result: NarrativeResult, digest: str) -> NarrativeResult:
        """Mark what the document made up, remove its secrets, and keep it for the handoff's packet.

        Raises RelayError if it cannot be kept.
        """
        from agent_relay.engine.publishing.packet_pipeline import get_allow
        from agent_relay.packet.digest import mark_unrecorded
        from agent_relay.redact.text import redact_text
        from agent_relay.store.packets import DigestDocument, write_digest

        session, at = self._host.session, self._services.clock.now().astimezone(UTC)
        known = gather_secrets(session.root, request.environ, cwd=session.cwd)
        # In a document of nothing but inventions, the marks are longer than the text.
        marked = mark_unrecorded(result.text, digest)[: narrative.LONGEST_TEXT]
        text = redact_text(marked, known=known, allow=get_allow(self._services)).text
        kept = DigestDocument(
            request.handoff.id, request.handoff.to_agent, f"{at:%Y-%m-%d %H:%M} UTC", at.isoformat(), text
        )
        write_digest(make_session_folder(session.root, session.id), kept)
        return NarrativeResult(result.kind, text)


def _is_about(body: object, handoff: str) -> bool:
    return isinstance(body, DigestBegun | DigestEnded) and body.handoff == handoff


def _read_tokens(request: _Request, output: str) -> dict[str, int]:
    """Sum the tokens that the run's output reports; input excludes what was cached."""
    headless = request.loaded.adapter.headless
    sayings = [saying for saying in headless.says if saying.means == "usage"] if headless else []
    found = dict.fromkeys(_KINDS, 0)
    for record in read_records(output):
        for said in read_record(sayings, record):
            for kind, count in said.tokens.items():
                found[kind] += count
    if request.spec.input_has_cached:
        found["input"] = max(0, found["input"] - found["cached"] - found["cache_write"])
    return found
