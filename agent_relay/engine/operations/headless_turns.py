"""The operations on headless turns: begin one, follow it piece by piece, release what it said."""

import asyncio
from collections.abc import Mapping

from agent_relay.agents.launch import get_program
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.inputs import TurnAsked
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.operations import StreamCursor
from agent_relay.domain.protocol.requests import Handler, Peer
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import State
from agent_relay.engine._turn_stream import (
    StreamPart,
    read_stream_part,
    render_cursor,
)
from agent_relay.engine.legs.headless import load_for
from agent_relay.engine.legs.holder_retention import forget_streams
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.active_session import ActiveSession
from agent_relay.engine.sessions.change_notifier import wait_for
from agent_relay.engine.sessions.lifecycle import SessionLifecycle
from agent_relay.engine.sessions.open_request import OpenRequest
from agent_relay.session.fold import fold_events
from agent_relay.session.turns.report import report_end
from agent_relay.store.journal import read_events
from agent_relay.store.session_journals import find_journal

_LISTEN_S = 20.0
"""How long an answer with nothing in it is delayed."""
_REFUSED_S = 7.0
"""How long a disk may refuse what a turn has to write before its followers get an error; one more try is
made."""


class HeadlessTurns:
    """Begins and reads headless turns. It keeps nothing for followers: each request carries a cursor."""

    def __init__(self, sessions: SessionLifecycle, services: Services) -> None:
        self._sessions = sessions
        self._services = services

    async def begin(
        self, wish: OpenRequest, most: int, *, waits: bool = False, message: str = ""
    ) -> tuple[str, StreamCursor]:
        """Begin the turn; return its session's id and the place before its first line.

        With `waits` the session does not end with the turn: another one may come. A repeated request with the
        same id of a `message` gets the same turn. Raises RelayError if the agent is not installed or cannot
        work headless.
        """
        any_leg = Leg("", wish.agent, 0, self._services.clock.now(), headless=True)
        await asyncio.to_thread(get_program, load_for(self._services, any_leg), wish.environ)
        asked = TurnAsked(wish.agent, wish.task, most, ends=not waits, message=message)
        begun = await self._sessions.take_turn(wish, asked)
        return begun.session, StreamCursor(begun.number - 1)

    async def follow(
        self, session_id: str, told: StreamCursor, *, follower: int = 0
    ) -> tuple[StreamPart, Session]:
        """Return what came after `told`; if nothing did, wait a while for it.

        `follower` is the process that reads: what several follow is kept until all have read it. Raises
        RelayError if the disk refuses what the turn has to write.
        """
        try:
            room = self._sessions.get(session_id)
        except WrongUseError:
            return await asyncio.to_thread(self._follow_ended, session_id, told)
        room.reading.note(follower, self._services.clock.monotonic())
        deadline = asyncio.get_running_loop().time() + _LISTEN_S
        while True:
            change = room.changes.listen()
            chapter, session = await self._read(room, told)
            told = chapter.told
            left_s = deadline - asyncio.get_running_loop().time()
            if chapter.events or left_s <= 0 or report_end(session, self._sessions.zone) is not None:
                break
            if room.host.refusal and left_s < _LISTEN_S - _REFUSED_S:
                raise RelayError(
                    f"session {session_id} cannot go on: {room.host.refusal}",
                    hint=f"It goes on when that is mended. To end it: agent-relay stop {session_id}",
                )
            await wait_for(change, min(left_s, _REFUSED_S))
        return chapter, session

    async def forget(self, session_id: str, *, follower: int = 0) -> None:
        """Remove the output of the turn's agents once nobody else reads it either."""
        room = self._sessions.get(session_id)
        room.reading.leave(follower, self._services.clock.monotonic())
        session = room.session
        if not room.reading.is_done:
            return
        if session.state is State.ENDED:
            await forget_streams(self._services, session)
        elif session.leg is not None:
            # The newest one's holder carries the user's environment to the next turn.
            await forget_streams(self._services, session, since=session.leg.id)

    async def _read(self, room: ActiveSession, told: StreamCursor) -> tuple[StreamPart, Session]:
        """Return what came after `told`, and the session as it was then: it changes while disk is read."""
        session = room.session
        # The journal is a line ahead of its session while that line is being written.
        events = tuple(room.host.events)[: session.number]
        chapter = await asyncio.to_thread(
            read_stream_part, self._services, session, events, told, self._sessions.zone
        )
        return chapter, session

    def _follow_ended(self, session_id: str, told: StreamCursor) -> tuple[StreamPart, Session]:
        """Return the same for a session that ended while no daemon, or another one, ran."""
        path = find_journal(self._services.folders, session_id)
        events = read_events(path) if path else []
        session = fold_events(events)
        if session is None:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        if session.state is not State.ENDED:
            raise WrongUseError(f"session {session.id} is not at work", hint="See: agent-relay status")
        return read_stream_part(self._services, session, events, told, self._sessions.zone), session


def build_run_handlers(sessions: SessionLifecycle, services: Services) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    running = HeadlessTurns(sessions, services)

    async def begin(asked: op.RunFields, _peer: Peer) -> Mapping[str, object]:
        wish = OpenRequest(
            agent=asked.agent,
            cwd=asked.cwd,
            environ=asked.env,
            args=asked.args,
            task=asked.task,
            session=asked.session,
            fresh=not asked.session,
            model=asked.model,
        )
        session, told = await running.begin(wish, asked.most, waits=asked.waits, message=asked.message)
        return {"session": session, "told": render_cursor(told)}

    async def follow(asked: op.FollowFields, peer: Peer) -> Mapping[str, object]:
        chapter, session = await running.follow(asked.session, asked.told, follower=peer.pid)
        sign_in = sessions.rooms.find_sign_in(session.agent)
        end = report_end(session, sessions.zone, sign_in=sign_in) if not chapter.events else None
        events = [*chapter.events, *((end,) if end is not None else ())]
        told = [event.model_dump(mode="json", exclude_none=True) for event in events]
        return {"events": told, "told": render_cursor(chapter.told), "over": end is not None}

    async def forget(asked: op.SessionFields, peer: Peer) -> Mapping[str, object]:
        await running.forget(asked.session, follower=peer.pid)
        return {}

    return dict(
        (
            op.RUN_BEGIN.performed_by(begin),
            op.RUN_FOLLOW.performed_by(follow),
            op.RUN_FORGET.performed_by(forget),
        )
    )
