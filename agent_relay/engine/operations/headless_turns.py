"""The operations on headless turns: begin one, follow it piece by piece, release what it said."""

import asyncio
from collections.abc import Mapping

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.inputs import TurnAsked
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.operations import StreamCursor
from agent_relay.domain.protocol.requests import Handler, Peer
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.engine._turn_stream import (
    StreamPart,
    read_stream_part,
    render_cursor,
)
from agent_relay.engine.legs.headless import check_headless
from agent_relay.engine.legs.holder_retention import forget_streams
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.change_notifier import wait_for
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.lifecycle import begin_turn
from agent_relay.engine.sessions.open_request import OpenRequest
from agent_relay.engine.sessions.registry import SessionRegistry
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

    def __init__(self, sessions: SessionRegistry, services: Services) -> None:
        self._sessions = sessions
        self._services = services

    async def begin(
        self, open_request: OpenRequest, most: int, *, waits: bool = False, message: str = ""
    ) -> tuple[str, StreamCursor]:
        """Begin the turn; return its session's id and the place before its first line.

        With `waits` the session does not end with the turn: another one may come. A repeated request with the
        same id of a `message` gets the same turn. Raises RelayError if the agent is not installed or cannot
        work headless.
        """
        await asyncio.to_thread(check_headless, self._services, open_request.agent, open_request.environ)
        asked = TurnAsked(open_request.agent, open_request.task, most, ends=not waits, message=message)
        begun = await begin_turn(self._sessions, open_request, asked)
        return begun.session, StreamCursor(begun.number - 1)

    async def follow(
        self, session_id: str, cursor: StreamCursor, *, follower: int = 0
    ) -> tuple[StreamPart, Session]:
        """Return what came after `cursor`; if nothing did, wait a while for it.

        `follower` is the process that reads: what several follow is kept until all have read it. Raises
        RelayError if the disk refuses what the turn has to write.
        """
        try:
            host = self._sessions.get(session_id)
        except WrongUseError:
            return await asyncio.to_thread(self._follow_ended, session_id, cursor)
        host.followers.note(follower, self._services.clock.monotonic())
        deadline = asyncio.get_running_loop().time() + _LISTEN_S
        while True:
            change = host.changes.listen()
            part, session = await self._read(host, cursor)
            cursor = part.cursor
            left_s = deadline - asyncio.get_running_loop().time()
            if part.events or left_s <= 0 or report_end(session, self._sessions.services.zone) is not None:
                break
            if host.refusal and left_s < _LISTEN_S - _REFUSED_S:
                raise RelayError(
                    f"session {session_id} cannot go on: {host.refusal}",
                    hint=f"It goes on when that is mended. To end it: agent-relay stop {session_id}",
                )
            await wait_for(change, min(left_s, _REFUSED_S))
        return part, session

    async def forget(self, session_id: str, *, follower: int = 0) -> None:
        """Remove the output of the turn's agents once nobody else reads it either."""
        host = self._sessions.get(session_id)
        host.followers.leave(follower, self._services.clock.monotonic())
        session = host.session
        if not host.followers.is_done:
            return
        if session.state is State.ENDED:
            await forget_streams(self._services, session)
        elif session.leg is not None:
            # The newest one's holder carries the user's environment to the next turn.
            await forget_streams(self._services, session, since=session.leg.id)

    async def _read(self, host: Host, cursor: StreamCursor) -> tuple[StreamPart, Session]:
        """Return what came after `cursor`, and the session as it was then: it changes while disk is read."""
        session = host.session
        # The journal is a line ahead of its session while that line is being written.
        events = tuple(host.events)[: session.number]
        part = await asyncio.to_thread(
            read_stream_part, self._services, session, events, cursor, self._sessions.services.zone
        )
        return part, session

    def _follow_ended(self, session_id: str, cursor: StreamCursor) -> tuple[StreamPart, Session]:
        """Return the same for a session that ended while no daemon, or another one, ran."""
        path = find_journal(self._services.folders, session_id)
        events = read_events(path) if path else []
        session = fold_events(events)
        if session is None:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        if session.state is not State.ENDED:
            raise WrongUseError(f"session {session.id} is not at work", hint="See: agent-relay status")
        return read_stream_part(
            self._services, session, events, cursor, self._sessions.services.zone
        ), session


def build_run_handlers(sessions: SessionRegistry, services: Services) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    running = HeadlessTurns(sessions, services)

    async def begin(asked: op.RunFields, _peer: Peer) -> Mapping[str, object]:
        open_request = OpenRequest(
            agent=asked.agent,
            cwd=asked.cwd,
            environ=asked.env,
            args=asked.args,
            task=asked.task,
            session=asked.session,
            fresh=not asked.session,
            model=asked.model,
        )
        session, cursor = await running.begin(
            open_request, asked.most, waits=asked.waits, message=asked.message
        )
        return {"session": session, "told": render_cursor(cursor)}

    async def follow(asked: op.FollowFields, peer: Peer) -> Mapping[str, object]:
        part, session = await running.follow(asked.session, asked.told, follower=peer.pid)
        sign_in = sessions.find_sign_in(session.agent)
        end = report_end(session, sessions.services.zone, sign_in=sign_in) if not part.events else None
        events = [*part.events, *((end,) if end is not None else ())]
        rendered = [event.model_dump(mode="json", exclude_none=True) for event in events]
        return {"events": rendered, "told": render_cursor(part.cursor), "over": end is not None}

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
