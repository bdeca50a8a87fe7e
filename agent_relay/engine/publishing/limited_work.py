"""Run what texts of any length need in a limited process: packets, one at a time, and secrets removed."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body
from agent_relay.domain.events.work import PacketSaved
from agent_relay.domain.inputs import Input, Published, PublishFailed
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.services import SessionHost
from agent_relay.engine.threads import finish_or_end
from agent_relay.redact.packet import count_redacted, redact_body
from agent_relay.session.decision import Outcome
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
from agent_relay.terminal.waiting_holder import prepare_spare

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
