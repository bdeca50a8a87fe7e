"""Do what people ask of sessions: open, stop, take turns; recover them all after a daemon's crash."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

import msgspec

from agent_relay.agents.launch import get_program, prepare_templates
from agent_relay.domain.errors import RelayError, StaleOwnerError, WrongUseError
from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import TurnBegun
from agent_relay.domain.inputs import StopAsked, TurnAsked
from agent_relay.domain.names import BY_HAND, get_journal_path, is_ulid, read_moment_ms
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values import Asker, has_passed, replace
from agent_relay.engine.legs import shutdown
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.engine.sessions import creation
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.threads import Failed, attempt
from agent_relay.session.fold import fold_events
from agent_relay.session.handoffs import begin_leg, find_native_id
from agent_relay.session.ownership import check_conversations
from agent_relay.session.transitions import find_turn_by_message
from agent_relay.session.turns.lifecycle import check_free
from agent_relay.session.views.messages import session_folder as build_folder
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, list_sessions_at, list_unended
from agent_relay.store.session_journals import ensure_leg_sessions_indexed, find_journal
from agent_relay.store.tree_owner import TreeOwnedError
from agent_relay.system.failures import find_passing

_log = logging.getLogger(__name__)
_START_S = 20.0
"""Longest time from a leg's exec to a living process, in seconds; then `open` gives up waiting for it."""
_SHORT_WAITS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 0.0)
"""Waits between tries to recover a session while this machine is short of descriptors or memory."""
_AT_ONCE = 8
"""Number of sessions recovered side by side: one whose holder is slow must not keep the others waiting."""


async def recover_sessions(registry: SessionRegistry) -> None:
    """Recover every session that the index names and that has not ended, except other owners'.

    What has ended is not opened: a user has thousands of those after a year.
    """
    try:
        await asyncio.to_thread(ensure_leg_sessions_indexed, registry.services.folders)
    except RelayError as error:
        _log.warning("index-not-renewed why=%s", type(error).__name__)
    index = await asyncio.to_thread(_list_unended, registry.services.folders.sessions)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def recover(session_id: str, root: str) -> None:
        async with turns:
            for wait_s in _SHORT_WAITS_S:
                result = await attempt(_recover(registry, session_id, root))
                if not (wait_s and isinstance(result, Failed) and find_passing(result.error)):
                    break
                await asyncio.sleep(wait_s)
        if isinstance(result, Failed):
            _note_unrecovered(registry, session_id, result.error)

    await asyncio.gather(*(recover(session_id, root) for session_id, root in index))


def _note_unrecovered(registry: SessionRegistry, session_id: str, error: Exception) -> None:
    """Note why the session was not recovered; one that another owner has is left to it."""
    if isinstance(error, TreeOwnedError):
        registry.owned_elsewhere[session_id] = error
        _log.info("left-to-another-owner session=%s", session_id)
        return
    _log.warning("not-recovered session=%s why=%s", session_id, type(error).__name__)
    if not isinstance(error, RelayError):
        registry.services.report(error)


FindAsker = Callable[[], Awaitable[tuple[str, Asker]]]
"""Returns the asking agent, empty for a person, and the asker to record."""


async def open_session(
    registry: SessionRegistry, request: creation.OpenRequest, find_asker: FindAsker
) -> tuple[Session, str]:
    """Attach to, hand over or begin a session; return it with `request.agent` at work, or on its way.

    The second value is a note for the user; empty for none. The asker is looked up for a handoff only: that
    may take a directory on the network.
    """
    note = ""
    creation.check_adoption(request)
    for name in (request.agent, request.terms.rollback or request.agent):
        registry.services.get_adapter(name)
    # Git and the disk are waited for meanwhile.
    prepare = partial(prepare_templates, registry.services.get_adapter(request.agent))
    asyncio.get_running_loop().run_in_executor(None, prepare)
    root = await asyncio.to_thread(creation.find_requested_root, request.cwd)
    registry.offer(request.pack(), root=root, session=request.session)
    await registry.settle()
    async with registry.lock:
        await registry.retire()
        host = await creation.find_session(registry, request, root)
        if host is None and request.source in {"", request.agent}:
            creation.check_terms(request, None)
        if host is None:
            host = await _begin(registry, request, root)
            note = await creation.find_note(registry.services, request)
        elif request.source and not creation.was_adopted(host.session, request):
            raise WrongUseError(
                f"session {host.session.id} is here already", hint="Add --new to begin another one"
            )
        else:
            creation.check_screen(host.session)
            living = host.session.living_leg
            creation.check_terms(request, host.session)
            await creation.check_use(
                request, host.session, host.runner.get_launch_environment(living.id if living else "")
            )
            note = await find_config_note(registry.services)
        session = await _go_on(registry, host, request, find_asker)
    return (session if session.handoff is not None else await await_start(registry, host)), note


async def find_config_note(services: Services) -> str:
    """Return that sessions at work use an older configuration than the file; empty if they do not."""
    problem = await asyncio.to_thread(services.followed_config.find_problem)
    return f"→ The earlier settings still apply: {problem.sentence}" if problem is not None else ""


async def save_packet(registry: SessionRegistry, request: creation.OpenRequest) -> tuple[Session, str]:
    """Write a packet of a session's present state for `request.agent`; return the session and the path.

    Raises WrongUseError if no session runs here, RelayError if the packet cannot be written.
    """
    registry.services.get_adapter(request.agent)
    root = await asyncio.to_thread(creation.find_requested_root, request.cwd)
    async with registry.lock:
        host = await creation.find_session(registry, request, root)
        if host is None and request.source:
            host = await creation.create(registry, request, root)
    if host is None or host.session.leg is None:
        raise WrongUseError(
            f"no session is running in {root}, so there is nothing to hand over",
            hint="Name an agent's own session: --from AGENT",
        )
    focus = await creation.build_focus(request, host.session)
    text_path = await host.runner.save_packet(request.agent, focus, request.environ, request.terms)
    return host.session, f"{build_folder(host.session)}/{text_path}"


async def take_up(registry: SessionRegistry, session_id: str, launch_environment: LaunchEnvironment) -> Host:
    """Return the session, reopened if it has ended. Legs begun from now on get `launch_environment`."""
    async with registry.lock:
        if session_id not in registry:
            await registry.reopen(session_id)
        host = registry.get(session_id)
        if host.session.living_leg is None:
            host.runner.take(launch_environment)
        return host


async def stop_session(registry: SessionRegistry, session_id: str, root: str = "") -> tuple[Session, str]:
    """Begin the end of the session and return it; stop its agent even if nothing can be journalled.

    That is the case if its folder was deleted or cannot be written. The second value is what the user
    should know of that; empty for nothing.
    """
    host, asked = await registry.find(session_id, root), StopAsked(BY_HAND)
    try:
        return await host.ask(asked), ""
    except StaleOwnerError:
        raise
    except RelayError as error:
        if session_id not in registry:
            raise
        why = error.sentence
    if not await asyncio.to_thread(os.path.isdir, host.session.root):
        return await registry.abandon(session_id), ""
    # Whoever wants an agent to end cannot be made to wait for room on a disk.
    host.tell(asked)
    ended = await host.stop_agent()
    if ended is not None:
        host.tell(ended)
    return host.session, f"Its agent has ended. {why}; that is noted when there is room."


async def _begin(registry: SessionRegistry, request: creation.OpenRequest, root: str) -> Host:
    """Begin a new session: start its first leg, or adopt its past."""
    await asyncio.to_thread(get_program, registry.services.get_adapter(request.agent), request.environ)
    host = await creation.create(registry, request, root)
    host.runner.take(request.pack(), request.task)
    if host.session.leg is None:
        context = await host.runner.build_context(host.session)
        await host.ask(begin_leg(host.session, request.agent, context))
    return host


async def _go_on(
    registry: SessionRegistry, host: Host, request: creation.OpenRequest, find_asker: FindAsker
) -> Session:
    focus = await creation.build_focus(request, host.session)
    session = host.session
    living = session.living_leg
    if living is not None and living.agent == request.agent and session.state is not State.STOPPING:
        return session
    if creation.is_on_its_way(session, request.agent) and creation.asks_nothing_new(request):
        return session
    _, asker = await find_asker()
    asked = request.build_wish(focus, asker)
    host.runner.take(request.pack(), request.task)
    if living is None:
        _check_conversations(registry, session, request.agent)
        await creation.end_adopted_program(registry.services, host, asked, request)
    return await host.ask(asked)


def _check_conversations(registry: SessionRegistry, session: Session, agent: str) -> None:
    """Raise WrongUseError if another session is at work on what `agent` would go on with here."""
    at_work, newest = registry.at_work(), session.leg
    resumed = find_native_id(session, agent)
    check_conversations(agent, (resumed,), at_work, successor=agent, but=session.id)
    if newest is not None:
        known = (newest.native_id,)
        check_conversations(newest.agent, known, at_work, successor=agent, but=session.id)


async def await_start(registry: SessionRegistry, host: Host) -> Session:
    """Return the session once its leg lives. Raise RelayError if it did not start."""

    def is_decided() -> bool:
        leg = host.session.leg
        if leg is None or not leg.is_over:
            return leg is not None and leg.child_pid > 0
        # The line that says why it ended is journalled after the one that says that it did.
        return bool(host.session.why or host.refusal) or host.is_idle

    if not await registry.changes.wait_while(lambda: not is_decided(), _START_S):
        raise RelayError(host.trouble or f"{host.session.agent} has not started within {_START_S:.0f} s")
    session = host.session
    if session.leg is not None and session.leg.is_over and session.leg.how == "unstarted":
        raise RelayError(session.why or f"{session.agent} could not be started")
    return session


async def _recover(registry: SessionRegistry, session_id: str, root: str) -> None:
    """Reopen the session if its journal says that it has not ended; otherwise tidy up after it."""
    path = get_journal_path(root, session_id)
    session = fold_events(await asyncio.to_thread(read_events, path))
    if session is None:
        return
    if session.state is State.ENDED:
        await shutdown.end_standby(registry.services, session)
        await shutdown.release_legs(registry.services, session)
        is_old = has_passed(shutdown.UNREAD_RETENTION, session.updated_at, registry.services.clock.now())
        if is_old:
            await shutdown.forget_streams(registry.services, session)
        if is_old or not any(leg.headless for leg in session.legs):
            await shutdown.note_ended(registry.services, session)
        return
    await registry.enter(session_id, root)


def _list_unended(index: str) -> list[tuple[str, str]]:
    """Return (session, root) of those not known to have ended, oldest first; log an unreadable entry."""
    found = [(session, find_root(index, session)) for session in list_unended(index)]
    for session, root in found:
        if not root:
            _log.warning("index-entry-unreadable session=%s", session)
    return [
        (session, root) for session, root in found if root and os.path.exists(get_journal_path(root, session))
    ]


_EARLIER_MS = 60_000
"""Most milliseconds a journal may seem older than its message: clocks are set, disks count coarsely."""


class TurnStart(msgspec.Struct, frozen=True):
    """Beginning of a turn: its session, and the number of its first line.

    With `is_given_up` it is over, and no agent was asked.
    """

    session: str
    number: int
    is_given_up: bool = False


async def _find_turn_by_message_id(
    registry: SessionRegistry, message: str, *, root: str, session: str
) -> TurnStart | None:
    """Return the turn begun for `message`, an id of the requester's; `None` if none has, or it is empty.

    It is looked for in the sessions at work, in `session`, and in those of the working tree `root` that
    changed since the id was made. Raises WrongUseError for what is no id.
    """
    if not message:
        return None
    if not is_ulid(message):
        raise WrongUseError("a message is named by a ULID")
    for host in registry:
        found = find_turn_by_message(host.events, message)
        if found is not None:
            return TurnStart(host.session.id, *found)
    since_s = (read_moment_ms(message) - _EARLIER_MS) / 1000
    for session_id in await asyncio.to_thread(_list_candidates, root, session):
        if session_id not in registry:
            found = find_turn_by_message(
                await asyncio.to_thread(_read_since, registry.services, root, session_id, since_s), message
            )
            if found is not None:
                return TurnStart(session_id, *found)
    return None


def _list_candidates(root: str, session: str) -> list[str]:
    """List the session asked for, and those whose folders are in the working tree, newest first."""
    return sorted({*list_sessions_at(root), *([session] if session else [])}, reverse=True)


def _read_since(services: Services, root: str, session_id: str, since_s: float) -> Sequence[Event]:
    """Return the events of a journal; none if it has not changed since, is foreign or cannot be read."""
    with contextlib.suppress(OSError, RelayError):
        near = get_journal_path(root, session_id)
        if os.path.lexists(near) and os.stat(near).st_mtime < since_s:
            return ()
        path = find_journal(services.folders, session_id)
        if path and os.stat(path).st_mtime >= since_s:
            return read_events(path)
    return ()


async def take_turn(host: Host, launch_environment: LaunchEnvironment, asked: TurnAsked) -> TurnStart:
    """Begin the turn and return where; its legs get the launch environment and its prompt as it was asked.

    Raises WrongUseError if something else is under way, whose environment and prompt stay as they are.
    """
    check_free(host.session)
    host.runner.take(launch_environment, asked.prompt)
    await host.ask(asked)
    host.followers.begin()
    numbers = [line.number for line in host.events if isinstance(line.body, TurnBegun)]
    return TurnStart(host.session.id, numbers[-1])


_ENDS_S = 5.0
"""Longest wait for the rest of a turn's end: the polite steps of a headless agent take no time."""


@contextlib.asynccontextmanager
async def hold_session(
    registry: SessionRegistry,
    request: creation.OpenRequest,
    message: str = "",
    *,
    patience_s: float = _ENDS_S,
) -> AsyncIterator[Host | TurnStart]:
    """Yield the requested session, or a new one; no other request gets in while it is held.

    If the turn for `message`, an id of the requester's, has begun, yields where it began instead, unless
    it was given up before an agent had a part in it. The rest of the end of the session's last turn is
    waited for, without keeping others from other sessions.
    """
    root = await asyncio.to_thread(creation.find_requested_root, request.cwd)
    registry.offer(request.pack(), root=root, session=request.session)
    is_patient = True
    while True:
        async with registry.lock:
            known = await _find_turn_by_message_id(registry, message, root=root, session=request.session)
            if known is not None and not known.is_given_up:
                yield known
                return
            if known is not None:
                request = replace(request, session=known.session, fresh=False)
            await registry.retire()
            host = await creation.find_session(registry, request, root) or await creation.create(
                registry, request, root
            )
            if not (is_patient and host.is_leaving):
                yield host
                return
        # The same one again, even if it was made just now.
        request = replace(request, session=host.session.id, fresh=False)
        is_patient = await host.await_end(patience_s)


@contextlib.asynccontextmanager
async def enter_session(registry: SessionRegistry, request: creation.OpenRequest) -> AsyncIterator[Host]:
    """Yield the session for a request without an id."""
    async with hold_session(registry, request) as found:
        if isinstance(found, Host):  # without a message's id it always is
            yield found
