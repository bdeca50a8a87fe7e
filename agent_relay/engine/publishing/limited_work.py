"""Run what texts of any length need in a limited process: packets, checkpoints, secrets removed.

Packets are published one at a time; a checkpoint is kept at every turn's end: built, written, journalled.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body
from agent_relay.domain.events.work import PacketSaved
from agent_relay.domain.inputs import Input, Published, PublishFailed
from agent_relay.domain.session import Handoff, Session
from agent_relay.domain.state import State
from agent_relay.engine.services import LaunchEnvironment, Services, SessionHost
from agent_relay.engine.threads import BackgroundTasks, Failed, attempt, finish_or_end
from agent_relay.redact.known_values import build_allow
from agent_relay.redact.packet import count_redacted, redact_body
from agent_relay.session.decision import Outcome
from agent_relay.store.project import make_session_folder
from agent_relay.system.failures import find_passing, find_shortage
from agent_relay.system.limited_process import (
    KilledError,
    LimitedProcess,
    NotBegunError,
    TookTooLongError,
    UnansweredError,
    WorkLimit,
    prepare,
    run_here,
)
from agent_relay.system.processes import pause_at
from agent_relay.terminal.waiting_holder import prepare_spare

if TYPE_CHECKING:
    from agent_relay.engine.publishing.checkpoint_building import BuiltCheckpoint, CheckpointProgress

_log = logging.getLogger(__name__)


_Made = TypeVar("_Made")
# One server serves all such work: whoever needs it first must start it with what the others need.
_MODULES = ("agent_relay.engine.publishing.work_server_imports",)


def prepare_server() -> None:
    """Have the server import all that the work needs. If it cannot, the work only takes longer."""
    with contextlib.suppress(OSError):
        prepare(_MODULES)


def run_limited(process: LimitedProcess, limit: WorkLimit, work: Callable[[], _Made]) -> _Made:
    """Return what `work` makes in a process that is ended at its limit. Call it in a thread.

    `work` must be picklable. If our installation is gone, no process can be started: this one has all that is
    needed in memory, and does the work without a limit. A process that was killed, or a server that does not
    answer or has ended, is started once more: the second is killed as well only if the work itself takes too
    much memory. What the machine lacks for a while is raised, and `find_passing` finds it. Raises a
    RelayError of the work as it is, RelayError if it exceeds its limit or is killed twice, RuntimeError for
    its other errors, with a process and without one.
    """
    prepare_server()
    try:
        try:
            return process.run(limit, work)
        except (KilledError, UnansweredError, NotBegunError) as error:
            if find_passing(error):
                raise
            _log.warning("work-begun-again why=%s", error.sentence)
            return process.run(limit, work)
    except NotBegunError as error:
        if find_passing(error):
            raise
        _log.warning("no-limited-process why=%s", error.sentence)
        return run_here(work)


AFTER_S = 1.0
"""Seconds at a leg's start left to its agent: a program that starts takes a processor for a while."""


class HandoffPreparation:
    """Makes the next handoff quick: has the server load what packets need, and starts the next leg's holder.

    Use it from the event loop.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Schedule the start of what does not run yet."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(_prepare(), name="prepare the next handoff")

    def close(self) -> None:
        """Cancel a start that has not happened yet."""
        if self._task is not None:
            self._task.cancel()


async def _prepare() -> None:
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(prepare_spare)
    await asyncio.to_thread(prepare_server)


MOST_AT_ONCE = 16_000
"""Most characters searched in this process, in some ten milliseconds: another process costs as much."""
_REDACTION_LIMIT = WorkLimit(processor_s=20, wall_s=60)


async def redact_event(body: Body, *, known: frozenset[str]) -> Body:
    """Return `body` as it may be journalled; `known` are values that are secret wherever they occur.

    Raises RelayError if it cannot be searched: then nothing of it may be journalled.
    """
    return await _redact(count_redacted(body), partial(redact_body, body, known=known))


async def redact_request(text: str, *, known: frozenset[str] = frozenset()) -> str:
    """Return `text` without secrets. Raise RelayError as `redact_event` does."""
    if not text:
        return text
    from agent_relay.redact.text import redact_words

    return await _redact(len(text), partial(redact_words, text, known=known))


def redact_in_thread(text: str, *, known: frozenset[str] = frozenset()) -> str:
    """Return `text` redacted as `redact_event` does it, for work that already runs in a thread."""
    from agent_relay.redact.text import redact_words

    work = partial(redact_words, text, known=known)
    return work() if len(text) <= MOST_AT_ONCE else _search(LimitedProcess(), work)


async def _redact(length: int, work: Callable[[], _Made]) -> _Made:
    if length <= MOST_AT_ONCE:
        return work()
    process = LimitedProcess()
    return await finish_or_end(process.end, _search, process, work)


def _search(process: LimitedProcess, work: Callable[[], _Made]) -> _Made:
    try:
        return run_limited(process, _REDACTION_LIMIT, work)
    except TookTooLongError as error:
        raise RelayError(
            f"a long text could not be searched for secrets: {error.sentence}", hint="Put it into a file"
        ) from error


Publish = Callable[[Session, Handoff, Mapping[str, str]], Published]
"""Makes the packet of a handoff visible, with the user's environment. Raises RelayError."""


class PacketPublisher:
    """Publishes packets one at a time: each takes its number from those on disk, and two would take the same.

    A cancelled caller waits for what is being written, so that no other packet comes in between. `end` is
    called then: the packet need not be built to its end.
    """

    def __init__(self, publish: Publish, *, end: Callable[[], None] = lambda: None) -> None:
        self._publish = publish
        self._end = end
        self._turn = asyncio.Lock()

    async def publish(self, host: SessionHost, handoff: Handoff, environ: Mapping[str, str]) -> Input:
        """Publish the handoff's packet; return that it is visible, or why it is not."""
        try:
            async with self._turn:
                return await finish_or_end(self._end, self._publish, host.session, handoff, environ)
        except RelayError as error:
            if find_shortage(error):
                raise
            return PublishFailed(handoff.id, error.sentence)

    async def save(self, host: SessionHost, occasion: Handoff, environ: Mapping[str, str]) -> str:
        """Publish and journal a packet that belongs to no handoff.

        Returns the path of its text, relative to the session's folder. Raises RelayError if it cannot be
        written.
        """
        async with self._turn:
            done = await finish_or_end(self._end, self._publish, host.session, occasion, environ)
            saved = PacketSaved(
                done.packet,
                done.sequence,
                occasion.to_agent,
                done.json_path,
                done.text_path,
                done.fingerprint,
            )
            await host.ask(Outcome((saved,)))
        return done.text_path


_CHECKPOINT_LIMIT = WorkLimit(processor_s=5, wall_s=30)
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
        built = run_limited(self._process, _CHECKPOINT_LIMIT, partial(build_checkpoint, order))
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
