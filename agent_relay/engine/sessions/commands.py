"""Do what people ask of sessions: open, hand over, stop; recover them all after a daemon's crash."""

import asyncio
import logging
import os

from agent_relay.agents.launch import get_program
from agent_relay.domain.errors import RelayError, StaleOwnerError, WrongUseError
from agent_relay.domain.inputs import HandoffAsked, StopAsked, TurnAsked
from agent_relay.domain.names import get_journal_path
from agent_relay.domain.session import BY_HAND, NO_TERMS, Session, Terms
from agent_relay.domain.state import State
from agent_relay.domain.values import has_passed
from agent_relay.engine.legs.launch_environment import LaunchEnvironment
from agent_relay.engine.legs.shutdown import (
    UNREAD_RETENTION,
    forget_streams,
    note_ended,
    release_legs,
)
from agent_relay.engine.publishing.limited_work import redact_request
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.creation import (
    OpenRequest,
    asks_nothing_new,
    build_focus,
    check_adoption,
    check_screen,
    check_terms,
    check_use,
    end_adopted_program,
    find_note,
    find_requested_root,
    is_on_its_way,
    was_adopted,
)
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.opener import (
    TurnStart,
    create,
    enter,
    enter_released,
    find_session,
    follow_move,
    hold_session,
    reopen,
    take_turn,
)
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.threads import Failed, attempt
from agent_relay.session.fold import fold_events
from agent_relay.session.handoff.lifecycle import begin_leg, find_native_id
from agent_relay.session.ownership import check_conversations
from agent_relay.session.views.messages import session_folder as build_folder
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, list_unended
from agent_relay.store.session_journals import ensure_leg_sessions_indexed
from agent_relay.store.tree_owner import TreeOwnedError
from agent_relay.system.failures import find_passing

_log = logging.getLogger(__name__)
_START_S = 20.0
"""How long a leg may take from exec to a living process before `open` gives up waiting for it."""
_SHORT_WAITS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 0.0)
"""Waits between tries to recover a session while this machine is short of descriptors or memory."""
_AT_ONCE = 8
"""How many sessions are recovered side by side: one whose holder is slow must not keep the others waiting."""


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


async def get_session(registry: SessionRegistry, session_id: str) -> Host:
    """Return the session as `get` does, but check again for one that another owner had."""
    if session_id in registry.owned_elsewhere:
        async with registry.lock:
            known = registry.owned_elsewhere.get(session_id)
            if known is not None:
                await enter_released(registry, known.root)
    return registry.get(session_id)


async def open_session(registry: SessionRegistry, request: OpenRequest) -> tuple[Session, str]:
    """Attach to, hand over or begin a session; return it with `request.agent` at work, or on its way.

    The second value is a note for the user; empty for none.
    """
    note = ""
    check_adoption(request)
    for name in (request.agent, request.terms.rollback or request.agent):
        registry.services.get_adapter(name)
    root = await asyncio.to_thread(find_requested_root, request.cwd)
    registry.offer(request.pack(), root=root, session=request.session)
    await registry.settle()
    async with registry.lock:
        await registry.retire()
        host = await find_session(registry, request, root)
        if host is None and request.source in {"", request.agent}:
            check_terms(request, None)
        if host is None:
            host = await _begin(registry, request, root)
            note = await find_note(registry.services, request)
        elif request.source and not was_adopted(host.session, request):
            raise WrongUseError(
                f"session {host.session.id} is here already", hint="Add --new to begin another one"
            )
        else:
            check_screen(host.session)
            living = host.session.living_leg
            check_terms(request, host.session)
            await check_use(
                request, host.session, host.runner.get_launch_environment(living.id if living else "")
            )
            note = await find_config_note(registry.services)
        session = await _go_on(registry, host, request)
    return (session if session.handoff is not None else await _await_start(registry, host)), note


async def find_config_note(services: Services) -> str:
    """Return that sessions at work use an older configuration than the file; empty if they do not."""
    problem = await asyncio.to_thread(services.followed_config.find_problem)
    return f"→ The earlier settings still apply: {problem.sentence}" if problem is not None else ""


async def save_packet(registry: SessionRegistry, request: OpenRequest) -> tuple[Session, str]:
    """Write a packet of a session's present state for `request.agent`; return the session and the path.

    Raises WrongUseError if no session runs here, RelayError if the packet cannot be written.
    """
    registry.services.get_adapter(request.agent)
    root = await asyncio.to_thread(find_requested_root, request.cwd)
    async with registry.lock:
        host = await find_session(registry, request, root)
        if host is None and request.source:
            host = await create(registry, request, root)
    if host is None or host.session.leg is None:
        raise WrongUseError(
            f"no session is running in {root}, so there is nothing to hand over",
            hint="Name an agent's own session: --from AGENT",
        )
    focus = await build_focus(request, host.session)
    text_path = await host.runner.save_packet(request.agent, focus, request.environ, request.terms)
    return host.session, f"{build_folder(host.session)}/{text_path}"


async def hand_over(
    registry: SessionRegistry,
    session_id: str,
    agent: str,
    *,
    focus: str = "",
    force: bool = False,
    terms: Terms = NO_TERMS,
) -> Session:
    """Begin a handoff to `agent`, without a name to the next one of its order; return the session.

    Raises RelayError if it cannot be begun.
    """
    for name in (agent, terms.rollback):
        if name:
            registry.services.get_adapter(name)
    asked = HandoffAsked(agent, focus=await redact_request(focus), force=force, terms=terms)
    return await (await get_session(registry, session_id)).ask(asked)


async def take_up(registry: SessionRegistry, session_id: str, launch_environment: LaunchEnvironment) -> Host:
    """Return the session, reopened if it has ended. Legs begun from now on get `launch_environment`."""
    async with registry.lock:
        if session_id not in registry:
            await reopen(registry, session_id)
        host = registry.get(session_id)
        if host.session.living_leg is None:
            host.runner.take(launch_environment)
        return host


async def begin_turn(registry: SessionRegistry, request: OpenRequest, asked: TurnAsked) -> TurnStart:
    """Begin the headless turn, in the requested session or a new one, and return where it begins.

    If the same message began one before, return that. Raises WrongUseError if the session is at work
    already.
    """
    async with hold_session(registry, request, asked.message) as found:
        match found:
            case TurnStart():
                return found
            case Host():
                return await take_turn(found, request.pack(), asked)


async def follow_renamed(registry: SessionRegistry, session_id: str, root: str) -> None:
    """Reopen the session in `root` if its folder was moved there; otherwise do nothing."""
    if root:
        async with registry.lock:
            await follow_move(registry, session_id, root)


async def stop_session(registry: SessionRegistry, session_id: str) -> tuple[Session, str]:
    """Begin the end of the session and return it; stop its agent even if nothing can be journalled.

    That is the case if its folder was deleted or cannot be written. The second value is what the user
    should know of that; empty for nothing.
    """
    host, asked = await get_session(registry, session_id), StopAsked(BY_HAND)
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


async def _begin(registry: SessionRegistry, request: OpenRequest, root: str) -> Host:
    """Begin a new session: start its first leg, or adopt its past."""
    await asyncio.to_thread(get_program, registry.services.get_adapter(request.agent), request.environ)
    host = await create(registry, request, root)
    host.runner.take(request.pack(), request.task)
    if host.session.leg is None:
        context = await host.runner.build_context(host.session)
        await host.ask(begin_leg(host.session, request.agent, context))
    return host


async def _go_on(registry: SessionRegistry, host: Host, request: OpenRequest) -> Session:
    focus = await build_focus(request, host.session)
    session = host.session
    living = session.living_leg
    if living is not None and living.agent == request.agent and session.state is not State.STOPPING:
        return session
    if is_on_its_way(session, request.agent) and asks_nothing_new(request):
        return session
    asked = HandoffAsked(request.agent, focus=focus, force=request.force, terms=request.terms)
    host.runner.take(request.pack(), request.task)
    if living is None:
        _check_conversations(registry, session, request.agent)
        await end_adopted_program(registry.services, host, asked, request)
    return await host.ask(asked)


def _check_conversations(registry: SessionRegistry, session: Session, agent: str) -> None:
    """Raise WrongUseError if another session is at work on what `agent` would go on with here."""
    at_work, newest = registry.at_work(), session.leg
    resumed = find_native_id(session, agent)
    check_conversations(agent, (resumed,), at_work, successor=agent, but=session.id)
    if newest is not None:
        known = (newest.native_id,)
        check_conversations(newest.agent, known, at_work, successor=agent, but=session.id)


async def _await_start(registry: SessionRegistry, host: Host) -> Session:
    """Return the session once its leg lives. Raise RelayError if it did not start."""

    def is_decided() -> bool:
        leg = host.session.leg
        return leg is not None and (leg.child_pid > 0 or leg.is_over)

    try:
        await registry.wait_until(is_decided, limit_s=_START_S)
    except TimeoutError:
        why = host.trouble or f"{host.session.agent} has not started within {_START_S:.0f} s"
        raise RelayError(why) from None
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
        await release_legs(registry.services, session)
        is_old = has_passed(UNREAD_RETENTION, session.updated_at, registry.services.clock.now())
        if is_old:
            await forget_streams(registry.services, session)
        if is_old or not any(leg.headless for leg in session.legs):
            await note_ended(registry.services, session)
        return
    await enter(registry, session_id, root)


def _list_unended(index: str) -> list[tuple[str, str]]:
    """Return (session, root) of those not known to have ended, oldest first; log an unreadable entry."""
    found = [(session, find_root(index, session)) for session in list_unended(index)]
    for session, root in found:
        if not root:
            _log.warning("index-entry-unreadable session=%s", session)
    return [
        (session, root) for session, root in found if root and os.path.exists(get_journal_path(root, session))
    ]
