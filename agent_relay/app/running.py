"""Headless turns as the daemon offers them: begun, followed piece by piece, let go of."""

import asyncio
from collections.abc import Mapping

from agent_relay.app.ground import Ground
from agent_relay.app.headless_legs import load_for
from agent_relay.app.index import find_journal
from agent_relay.app.kept import forget_streams
from agent_relay.app.launching import get_program
from agent_relay.app.pulse import wait_for
from agent_relay.app.room import Room
from agent_relay.app.sessions import Sessions
from agent_relay.app.telling import Chapter, Told, parse_told, render_told, tell_on
from agent_relay.app.wishes import OpenWish
from agent_relay.domain.effect import TurnAsked
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.serving import Handler, Peer, Request
from agent_relay.domain.session import Leg, Session, State
from agent_relay.logic.fold import fold_events
from agent_relay.logic.turn_report import report_end
from agent_relay.system.journal import read_events

_LISTEN_S = 20.0
"""How long an answer with nothing in it is put off."""
_REFUSED_S = 7.0
"""How long a disk may refuse what a turn has to write before its followers are told: one more try is made."""
_MOST_TURNS = 1000


class Running:
    """Follows nobody by itself: every question says up to where its asker was told."""

    def __init__(self, sessions: Sessions, ground: Ground) -> None:
        self._sessions = sessions
        self._ground = ground

    async def begin(
        self, wish: OpenWish, most: int, *, waits: bool = False, message: str = ""
    ) -> tuple[str, Told]:
        """The id of the session at work on the turn, and the place before its first line.

        With `waits` it does not end with the turn: its next one may come. Who asks again by the same id of
        a `message` is told of the same turn.
        Raises RelayError where the agent that was asked is not installed or knows no headless work.
        """
        any_leg = Leg("", wish.agent, 0, self._ground.clock.now(), headless=True)
        await asyncio.to_thread(get_program, load_for(self._ground, any_leg), wish.environ)
        asked = TurnAsked(wish.agent, wish.task, most, ends=not waits, message=message)
        begun = await self._sessions.take_turn(wish, asked)
        return begun.session, Told(begun.number - 1)

    async def follow(self, session_id: str, told: Told, *, follower: int = 0) -> tuple[Chapter, Session]:
        """What came since `told`; where nothing did, the answer waits for it a while.

        `follower` is the process that reads: what several do is kept until all have read it.
        """
        try:
            room = self._sessions.get(session_id)
        except WrongUseError:
            return await asyncio.to_thread(self._follow_ended, session_id, told)
        room.reading.note(follower, self._ground.clock.monotonic())
        deadline = asyncio.get_running_loop().time() + _LISTEN_S
        while True:
            beat = room.pulse.listen()
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
            await wait_for(beat, min(left_s, _REFUSED_S))
        return chapter, session

    async def forget(self, session_id: str, *, follower: int = 0) -> None:
        """What the turn's agents said need not be kept any longer, once nobody else reads it either."""
        room = self._sessions.get(session_id)
        room.reading.leave(follower, self._ground.clock.monotonic())
        session = room.session
        if not room.reading.is_done:
            return
        if session.state is State.ENDED:
            await forget_streams(self._ground, session)
        elif session.leg is not None:
            # The newest one's holder carries the user's environment to the next turn.
            await forget_streams(self._ground, session, since=session.leg.id)

    async def _read(self, room: Room, told: Told) -> tuple[Chapter, Session]:
        """What came since `told`, and the session as it was then: it changes while disk is read."""
        session = room.session
        # The journal is a line ahead of its session while that line is being written.
        events = tuple(room.host.events)[: session.number]
        chapter = await asyncio.to_thread(tell_on, self._ground, session, events, told, self._sessions.zone)
        return chapter, session

    def _follow_ended(self, session_id: str, told: Told) -> tuple[Chapter, Session]:
        """The same of a session that ended while no daemon, or another one, was there."""
        path = find_journal(self._ground.folders, session_id)
        events = read_events(path) if path else []
        session = fold_events(events)
        if session is None:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        if session.state is not State.ENDED:
            raise WrongUseError(f"session {session.id} is not at work", hint="See: agent-relay status")
        return tell_on(self._ground, session, events, told, self._sessions.zone), session


def build_run_handlers(sessions: Sessions, ground: Ground) -> Mapping[str, Handler]:
    """The operations by name."""
    running = Running(sessions, ground)

    async def begin(request: Request, _peer: Peer) -> Mapping[str, object]:
        wish = OpenWish(
            agent=request.text("agent"),
            cwd=request.text("cwd"),
            environ=request.mapping("env"),
            args=request.texts("args"),
            task=request.text("task"),
            session=request.text("session", ""),
            fresh=not request.text("session", ""),
            model=request.text("model", ""),
        )
        most = request.number("most", 0)
        if not 0 <= most <= _MOST_TURNS:
            raise WrongUseError(f"{request.op} needs most between 0 and {_MOST_TURNS}")
        session, told = await running.begin(
            wish, most, waits=request.flag("waits"), message=request.text("message", "")
        )
        return {"session": session, "told": render_told(told)}

    async def follow(request: Request, peer: Peer) -> Mapping[str, object]:
        chapter, session = await running.follow(
            request.text("session"), parse_told(request), follower=peer.pid
        )
        sign_in = sessions.rooms.find_sign_in(session.agent)
        end = report_end(session, sessions.zone, sign_in=sign_in) if not chapter.events else None
        events = [*chapter.events, *((end,) if end is not None else ())]
        told = [event.model_dump(mode="json", exclude_none=True) for event in events]
        return {"events": told, "told": render_told(chapter.told), "over": end is not None}

    async def forget(request: Request, peer: Peer) -> Mapping[str, object]:
        await running.forget(request.text("session"), follower=peer.pid)
        return {}

    return {"run.begin": begin, "run.follow": follow, "run.forget": forget}
