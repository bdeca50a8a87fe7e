"""The life of every session on this machine: found, begun, recovered after a crash, stopped."""

import asyncio
import logging
import os
from datetime import tzinfo

from agent_relay.agents.launch import get_program
from agent_relay.domain.errors import RelayError, StaleOwnerError, WrongUseError
from agent_relay.domain.inputs import HandoffAsked, StopAsked, TurnAsked
from agent_relay.domain.session import BY_HAND, NO_TERMS, Session, Terms
from agent_relay.domain.state import State
from agent_relay.domain.values.elapsed import has_passed
from agent_relay.domain.values.project_layout import get_journal_path
from agent_relay.engine.legs.holder_retention import (
    UNREAD_RETENTION,
    forget_streams,
    note_ended,
    release_legs,
)
from agent_relay.engine.legs.live_leg import LaunchEnvironment
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.publishing.redaction import redact_request
from agent_relay.engine.services import Services
from agent_relay.engine.sessions._creation import (
    end_adopted_program,
    find_config_note,
    find_note,
    was_adopted,
)
from agent_relay.engine.sessions._registry import SessionRegistry
from agent_relay.engine.sessions.active_session import ActiveSession
from agent_relay.engine.sessions.open_request import (
    OpenRequest,
    asks_nothing_new,
    build_focus,
    check_adoption,
    check_screen,
    check_terms,
    check_use,
    find_requested_root,
    is_on_its_way,
)
from agent_relay.engine.sessions.opener import SessionOpener, TurnStart, get_newest
from agent_relay.session.adoption import check_conversations
from agent_relay.session.fold import fold_events
from agent_relay.session.handoff.lifecycle import begin_leg, find_native_id
from agent_relay.session.views.messages import session_folder as build_folder
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, list_unended
from agent_relay.store.session_journals import ensure_leg_sessions_indexed, open_journal
from agent_relay.store.tree_owner import TreeOwnedError
from agent_relay.system.failures import find_passing

_log = logging.getLogger(__name__)
_START_S = 20.0
"""How long a leg may take from exec to a living process before `open` gives up waiting for it."""
_ENDINGS_S = 7.0
"""How long a daemon that is stopped waits for what is ending: the polite steps of nearly every agent."""
_SHORT_WAITS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 0.0)
"""Waits between tries to recover a session while this machine is short of descriptors or memory."""
_AT_ONCE = 8
"""How many sessions are recovered side by side: one whose holder is slow must not keep the others waiting."""


class SessionLifecycle:
    """Opens, recovers and stops the sessions of one daemon. Use it from the event loop only.

    `opener` finds or creates the session for a request.
    """

    def __init__(self, services: Services, narrating: NarrativeWriter) -> None:
        self._services = services
        self._rooms = SessionRegistry(services, narrating)
        self.opener = SessionOpener(services, self._rooms)

    @property
    def zone(self) -> tzinfo:
        """The zone times are shown in."""
        return self._services.zone

    async def start(self) -> None:
        """Recover every session that the index names and that has not ended, except other owners'.

        What has ended is not opened: a user has thousands of those after a year.
        """
        try:
            await asyncio.to_thread(ensure_leg_sessions_indexed, self._services.folders)
        except RelayError as error:
            _log.warning("index-not-renewed why=%s", type(error).__name__)
        index = await asyncio.to_thread(_list_unended, self._services.folders.sessions)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def take_up(session_id: str, root: str) -> None:
            async with turns:
                for wait_s in _SHORT_WAITS_S:
                    try:
                        await self._take_up(session_id, root)
                    except TreeOwnedError as error:
                        self._rooms.owned_elsewhere[session_id] = error
                        _log.info("left-to-another-owner session=%s", session_id)
                    except Exception as error:  # noqa: BLE001 - one journal a bug made impossible must not cost all the others
                        if wait_s and find_passing(error):
                            await asyncio.sleep(wait_s)
                            continue
                        _log.warning("not-recovered session=%s why=%s", session_id, type(error).__name__)
                        if not isinstance(error, RelayError):
                            self._services.report(error)
                    return

        await asyncio.gather(*(take_up(session_id, root) for session_id, root in index))

    async def stop(self) -> None:
        """Stop everything in this process; agents and holders are left as they are.

        Those that are ending are waited for: it may be long until another daemon could collect them.
        """
        await self._rooms.see_out(_ENDINGS_S)
        await self._rooms.close()

    async def find(self, session_id: str) -> ActiveSession:
        """Return the session as `get` does, but check again for one that another owner had."""
        if session_id in self._rooms.owned_elsewhere:
            async with self.opener.lock:
                known = self._rooms.owned_elsewhere.get(session_id)
                if known is not None:
                    await self.opener.enter_released(known.root)
        return self.get(session_id)

    def get(self, session_id: str) -> ActiveSession:
        """Return the session of that id. Raise WrongUseError if no such session is at work."""
        return self._rooms.get(session_id)

    def at_work(self) -> list[Session]:
        """Return the sessions that have not ended, newest change first."""
        return self._rooms.at_work()

    @property
    def rooms(self) -> SessionRegistry:
        """The registry of the sessions at work."""
        return self._rooms

    def socket_of(self, leg_id: str) -> str:
        """Return the path of the socket of the leg's holder."""
        return f"{self._services.folders.legs}/{leg_id}/sock"

    async def open(self, wish: OpenRequest) -> tuple[Session, str]:
        """Attach to, hand over or begin a session; return it with `wish.agent` at work, or on its way.

        The second value is a note for the user; empty for none.
        """
        note = ""
        check_adoption(wish)
        for name in (wish.agent, wish.terms.rollback or wish.agent):
            self._services.get_adapter(name)
        root = await asyncio.to_thread(find_requested_root, wish.cwd)
        self._rooms.offer(wish.pack(), root=root, session=wish.session)
        await self._rooms.settle()
        async with self.opener.lock:
            await self._rooms.retire()
            room = await self.opener.find(wish, root)
            if room is None and wish.source in {"", wish.agent}:
                check_terms(wish, None)
            if room is None:
                room = await self._begin(wish, root)
                note = await find_note(self._services, wish)
            elif wish.source and not was_adopted(room.session, wish):
                raise WrongUseError(
                    f"session {room.session.id} is here already", hint="Add --new to begin another one"
                )
            else:
                check_screen(room.session)
                living = room.session.living_leg
                check_terms(wish, room.session)
                await check_use(wish, room.session, room.stage.get_luggage(living.id if living else ""))
                note = await self.find_config_note()
            session = await self._go_on(room, wish)
        return (session if session.handoff is not None else await self._started(room)), note

    async def find_config_note(self) -> str:
        """Return that sessions use an older configuration than the file; empty if they do not."""
        return await asyncio.to_thread(find_config_note, self._services)

    async def save_packet(self, wish: OpenRequest) -> tuple[Session, str]:
        """Write a packet of a session's present state for `wish.agent`; return the session and the path.

        Raises WrongUseError if no session runs here, RelayError if the packet cannot be written.
        """
        self._services.get_adapter(wish.agent)
        root = await asyncio.to_thread(find_requested_root, wish.cwd)
        async with self.opener.lock:
            room = await self.opener.find(wish, root)
            if room is None and wish.source:
                room = await self.opener.create(wish, root)
        if room is None or room.session.leg is None:
            raise WrongUseError(
                f"no session is running in {root}, so there is nothing to hand over",
                hint="Name an agent's own session: --from AGENT",
            )
        focus = await build_focus(wish, room.session)
        text_path = await room.stage.save_packet(wish.agent, focus, wish.environ, wish.terms)
        return room.session, f"{build_folder(room.session)}/{text_path}"

    async def use(
        self, session_id: str, agent: str, *, focus: str = "", force: bool = False, terms: Terms = NO_TERMS
    ) -> Session:
        """Begin a handoff to `agent`, without a name to the next one of its order; return the session.

        Raises RelayError if it cannot be begun.
        """
        for name in (agent, terms.rollback):
            if name:
                self._services.get_adapter(name)
        asked = HandoffAsked(agent, focus=await redact_request(focus), force=force, terms=terms)
        return await (await self.find(session_id)).host.ask(asked)

    async def take_up(self, session_id: str, luggage: LaunchEnvironment) -> ActiveSession:
        """Return the session, reopened if it has ended. Legs begun from now on get `luggage`."""
        async with self.opener.lock:
            if session_id not in self._rooms:
                await self.opener.reopen(session_id)
            room = self.get(session_id)
            if room.session.living_leg is None:
                room.stage.take(luggage)
            return room

    async def take_turn(self, wish: OpenRequest, asked: TurnAsked) -> TurnStart:
        """Begin the headless turn, in the requested session or a new one, and return where it begins.

        If the same message began one before, return that. Raises WrongUseError if the session is at work
        already.
        """
        async with self.opener.hold(wish, asked.message) as found:
            match found:
                case TurnStart():
                    return found
                case ActiveSession():
                    await found.take_turn(wish.pack(), asked)
                    found.reading.begin()
                    return get_newest(found)

    async def follow_move(self, session_id: str, root: str) -> None:
        """Reopen the session in `root` if its folder was moved there; otherwise do nothing."""
        if root:
            async with self.opener.lock:
                await self.opener.follow_move(session_id, root)

    async def stop_session(self, session_id: str) -> tuple[Session, str]:
        """Begin the end of the session and return it; stop its agent even if nothing can be journalled.

        That is the case if its folder was deleted or cannot be written. The second value is what the user
        should know of that; empty for nothing.
        """
        room, asked = await self.find(session_id), StopAsked(BY_HAND)
        try:
            return await room.host.ask(asked), ""
        except StaleOwnerError:
            raise
        except RelayError as error:
            if session_id not in self._rooms:
                raise
            why = error.sentence
        if not await asyncio.to_thread(os.path.isdir, room.session.root):
            return await self._rooms.abandon(session_id), ""
        # Whoever wants an agent to end cannot be made to wait for room on a disk.
        await room.end_unwritten(asked)
        return room.session, f"Its agent has ended. {why}; that is noted when there is room."

    async def _begin(self, wish: OpenRequest, root: str) -> ActiveSession:
        """Begin a new session: start its first leg, or adopt its past."""
        await asyncio.to_thread(get_program, self._services.get_adapter(wish.agent), wish.environ)
        room = await self.opener.create(wish, root)
        room.stage.take(wish.pack(), wish.task)
        if room.session.leg is None:
            world = await room.stage.build_world(room.session)
            await room.host.ask(begin_leg(room.session, wish.agent, world))
        return room

    async def _go_on(self, room: ActiveSession, wish: OpenRequest) -> Session:
        focus = await build_focus(wish, room.session)
        session = room.session
        living = session.living_leg
        if living is not None and living.agent == wish.agent and session.state is not State.STOPPING:
            return session
        if is_on_its_way(session, wish.agent) and asks_nothing_new(wish):
            return session
        asked = HandoffAsked(wish.agent, focus=focus, force=wish.force, terms=wish.terms)
        room.stage.take(wish.pack(), wish.task)
        if living is None:
            self._check_conversations(session, wish.agent)
            await end_adopted_program(self._services, room, asked, wish)
        return await room.host.ask(asked)

    def _check_conversations(self, session: Session, agent: str) -> None:
        """Raise WrongUseError if another session is at work on what `agent` would go on with here."""
        at_work, newest = self.at_work(), session.leg
        resumed = find_native_id(session, agent)
        check_conversations(agent, (resumed,), at_work, successor=agent, but=session.id)
        if newest is not None:
            known = (newest.native_id,)
            check_conversations(newest.agent, known, at_work, successor=agent, but=session.id)

    async def _started(self, room: ActiveSession) -> Session:
        """Return the session once its leg lives. Raise RelayError if it did not start."""

        def is_decided() -> bool:
            leg = room.session.leg
            return leg is not None and (leg.child_pid > 0 or leg.is_over)

        try:
            await self._rooms.wait_until(is_decided, limit_s=_START_S)
        except TimeoutError:
            why = room.trouble or f"{room.session.agent} has not started within {_START_S:.0f} s"
            raise RelayError(why) from None
        session = room.session
        if session.leg is not None and session.leg.is_over and session.leg.how == "unstarted":
            raise RelayError(session.why or f"{session.agent} could not be started")
        return session

    async def _take_up(self, session_id: str, root: str) -> None:
        """Reopen the session if its journal says that it has not ended; otherwise tidy up after it."""
        path = get_journal_path(root, session_id)
        session = fold_events(await asyncio.to_thread(read_events, path))
        if session is None:
            return
        if session.state is State.ENDED:
            await release_legs(self._services, session)
            is_old = has_passed(UNREAD_RETENTION, session.updated_at, self._services.clock.now())
            if is_old:
                await forget_streams(self._services, session)
            if is_old or not any(leg.headless for leg in session.legs):
                await note_ended(self._services, session)
            return
        folders = self._services.folders
        async with self._rooms.trees.enter(root):
            journal = await asyncio.to_thread(open_journal, folders, session_id, root)
            await self._rooms.reopen(journal, root)


def _list_unended(index: str) -> list[tuple[str, str]]:
    """Return (session, root) of those not known to have ended, oldest first; log an unreadable entry."""
    found = [(session, find_root(index, session)) for session in list_unended(index)]
    for session, root in found:
        if not root:
            _log.warning("index-entry-unreadable session=%s", session)
    return [
        (session, root) for session, root in found if root and os.path.exists(get_journal_path(root, session))
    ]
