"""Keep a checkpoint at every turn's end: have it built in a limited process, written, and journalled."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.engine.publishing.limited_work import run_limited
from agent_relay.engine.services import LaunchEnvironment, Services, SessionHost
from agent_relay.engine.threads import BackgroundTasks, Failed, attempt, finish_or_end
from agent_relay.redact.known_values import build_allow
from agent_relay.session.decision import Outcome
from agent_relay.store.project import make_session_folder
from agent_relay.system.limited_process import LimitedProcess, TookTooLongError, WorkLimit
from agent_relay.system.processes import pause_at

if TYPE_CHECKING:
    from agent_relay.engine.publishing.checkpoint_building import BuiltCheckpoint, CheckpointProgress

_log = logging.getLogger(__name__)
_LIMIT = WorkLimit(processor_s=5, wall_s=30)
_SETTLE_S = 0.5
"""Seconds an agent may take after its turn to write the last answer into its own record."""
_LAST_S = 2.0
"""Longest wait of a leg's end for its last checkpoint, in seconds."""
_REST = frozenset({State.READY, State.RESTING})
_WORK = frozenset({State.BUSY, State.ASKING, State.LIMITED})


class LaunchedLeg(Protocol):
    """A living leg, as far as its checkpoints need it."""

    @property
    def launch_environment(self) -> LaunchEnvironment:
        """The environment, arguments and values the leg was launched with."""
        ...


class CheckpointKeeper:
    """Keeps the checkpoints of one session, one at a time. Use it from the event loop."""

    def __init__(self, services: Services, host: SessionHost, live: Mapping[str, LaunchedLeg]) -> None:
        self._services = services
        self._host = host
        self._live = live
        self._process = LimitedProcess()
        self._turn = asyncio.Lock()
        self._before = host.session
        self._progress: dict[tuple[str, str], CheckpointProgress] = {}
        self._given_up: set[tuple[str, str]] = set()
        self._tasks = BackgroundTasks()

    def see(self, session: Session) -> None:
        """Keep a checkpoint soon if the session's agent has just ended a turn."""
        before, self._before = self._before, session
        leg = session.living_leg
        if leg is None or leg.headless or session.state not in _REST:
            return
        was = before.leg if before.leg is not None and before.leg.id == leg.id else None
        if before.state in _WORK:
            self._begin(self._keep_later(leg.id))
        elif was is not None and (was.asked, was.was_busy) != (leg.asked, leg.was_busy):
            # A short turn may be over before its screen is read: it shows by its prompt alone.
            self._begin(self._keep_later(leg.id, is_short=True))

    async def keep_last(self, leg_id: str, environ: Mapping[str, str]) -> None:
        """Keep a checkpoint of a leg that has ended. Waits for it, but not long, and not for a handoff's.

        The packet of a handoff is about to be made of the same record.
        """
        task = self._begin(self._keep(leg_id, environ))
        if self._host.session.state is not State.HANDING_OFF:
            await asyncio.wait({task}, timeout=_LAST_S)

    async def close(self) -> None:
        """End what is being built; what was written stays."""
        await self._tasks.close()

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        return self._tasks.begin(work, name=f"checkpoint {self._host.session.id}")

    async def _keep_later(self, leg_id: str, *, is_short: bool = False) -> None:
        """Keep a checkpoint once the agent has had time to write; of a short turn only if none goes on."""
        await asyncio.sleep(_SETTLE_S)
        live = self._live.get(leg_id)
        if live is not None and not (is_short and self._host.session.state in _WORK):
            await self._keep(leg_id, live.launch_environment.environ)

    async def _keep(self, leg_id: str, environ: Mapping[str, str]) -> None:
        """Build, write and journal the checkpoint; without it the session goes on all the same."""
        async with self._turn:
            leg = next(one for one in self._host.session.legs if one.id == leg_id)
            key = (leg.agent, leg.native_id or leg.id)
            if key in self._given_up:
                return
            before = self._progress.get(key)
            working = finish_or_end(self._process.end, self._build_and_write, leg_id, environ, before)
            match await attempt(working):
                case None:
                    pass
                case Failed(TookTooLongError()):
                    # It would take as long after every turn.
                    self._given_up.add(key)
                    _log.warning("checkpoints-given-up leg=%s", leg_id)
                case Failed(RelayError() as error):
                    _log.warning("checkpoint-failed leg=%s why=%s", leg_id, type(error).__name__)
                case Failed(error):
                    self._services.report(error)
                case built:
                    self._progress[key] = built.progress
                    self._host.tell(Outcome((built.event,)))

    def _build_and_write(
        self, leg_id: str, environ: Mapping[str, str], before: "CheckpointProgress | None"
    ) -> "BuiltCheckpoint | None":
        """Build the checkpoint and write what it keeps; `None` if nothing changed. Runs in a thread.

        Raises RelayError if it cannot be built, or the disk refuses; then nothing has changed.
        """
        # What it needs is heavy, and a daemon starts without it.
        from agent_relay.engine.publishing.checkpoint_building import CheckpointOrder, build_checkpoint
        from agent_relay.store.checkpoints import add_checkpoint, replace_checkpoints

        session, services = self._host.session, self._services
        leg = next(one for one in session.legs if one.id == leg_id)
        wishes = services.config.redaction
        order = CheckpointOrder(
            session,
            leg,
            services.get_adapter(leg.agent),
            dict(environ),
            services.clock.now(),
            build_allow(wishes.allow, wishes.allow_patterns),
            before,
        )
        if not order.is_due():
            return None
        built = run_limited(self._process, _LIMIT, partial(build_checkpoint, order))
        if built is None or not built.line:
            return built
        folder = make_session_folder(session.root, session.id)
        pause_at("before checkpoint")
        if built.contents is None:
            add_checkpoint(folder, built.line)
        else:
            replace_checkpoints(folder, built.contents)
        pause_at("after checkpoint")
        return built
