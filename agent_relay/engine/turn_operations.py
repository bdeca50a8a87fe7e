"""Answer the operations on headless turns and chats: begin one, follow it, go on turn by turn."""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.work import ChatBegun, TurnBegun
from agent_relay.domain.inputs import StopAsked, TurnAsked
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.operations import LISTEN_S, Handler, Peer, StreamCursor
from agent_relay.domain.protocol.run_output import ChatOver, ChatStarted, TurnNext
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.engine.legs.leg_start import check_headless
from agent_relay.engine.legs.shutdown import forget_streams
from agent_relay.engine.legs.turn_stream import StreamPart, read_stream_part
from agent_relay.engine.publishing.limited_work import redact_in_thread
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.commands import TurnStart, enter_session, hold_session, take_turn
from agent_relay.engine.sessions.creation import OpenRequest
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.threads import wait_for
from agent_relay.session.decision import Outcome
from agent_relay.session.fold import fold_events
from agent_relay.session.handoffs import find_native_id
from agent_relay.session.turns.chat import (
    Chat,
    ChatEnd,
    Seat,
    build_prompt,
    find_next_seat,
    fold_chat,
    render_chat_end,
)
from agent_relay.session.turns.lifecycle import check_free
from agent_relay.session.turns.report import report_end
from agent_relay.session.views.messages import session_folder
from agent_relay.store.journal import read_events
from agent_relay.store.session_journals import find_journal
from agent_relay.system.config_file import gather_secrets

_REFUSED_S = 7.0
"""Longest time, in seconds, that a disk may refuse what a turn has to write before its followers get an
error; one more try is made."""


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
        async with hold_session(self._sessions, open_request, message) as found:
            begun = await take_turn(found, open_request.pack(), asked) if isinstance(found, Host) else found
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
        deadline = asyncio.get_running_loop().time() + LISTEN_S
        while True:
            change = host.changes.listen()
            part, session = await self._read(host, cursor)
            cursor = part.cursor
            left_s = deadline - asyncio.get_running_loop().time()
            if part.events or left_s <= 0 or report_end(session, self._sessions.services.zone) is not None:
                break
            if host.refusal and left_s < LISTEN_S - _REFUSED_S:
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


def build_handlers(sessions: SessionRegistry, services: Services) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    running, chats = HeadlessTurns(sessions, services), _Chats(sessions, services)

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
        return {"session": session, "told": asdict(cursor)}

    async def follow(asked: op.RunFollowFields, peer: Peer) -> Mapping[str, object]:
        part, session = await running.follow(asked.session, asked.told, follower=peer.pid)
        sign_in = sessions.find_sign_in(session.agent)
        end = report_end(session, sessions.services.zone, sign_in=sign_in) if not part.events else None
        events = [*part.events, *((end,) if end is not None else ())]
        rendered = [event.model_dump(mode="json", exclude_none=True) for event in events]
        return {"events": rendered, "told": asdict(part.cursor), "over": end is not None}

    async def forget(asked: op.SessionFields, peer: Peer) -> Mapping[str, object]:
        await running.forget(asked.session, follower=peer.pid)
        return {}

    return dict(
        (
            op.RUN_BEGIN.performed_by(begin),
            op.RUN_FOLLOW.performed_by(follow),
            op.RUN_FORGET.performed_by(forget),
            op.CHAT_BEGIN.performed_by(chats.begin),
            op.CHAT_NEXT.performed_by(chats.go_on),
        )
    )


_MOST_AGENTS = 16


class _Chats:
    """Begins the turns of chats; they are followed like all headless turns."""

    def __init__(self, sessions: SessionRegistry, services: Services) -> None:
        self._sessions = sessions
        self._services = services

    async def begin(self, asked: op.ChatFields, _peer: Peer) -> Mapping[str, object]:
        """Begin a chat, or go on with the session's, and its first turn."""
        agents, session = asked.agents, asked.session
        if len(set(agents)) != len(agents) or len(agents) > _MOST_AGENTS or not (session or len(agents) > 1):
            raise WrongUseError("a chat needs two agents or more, each of them once")
        open_request = OpenRequest(
            agent=agents[0] if agents else "",
            cwd=asked.cwd,
            environ=asked.env,
            task=asked.task,
            session=session,
            fresh=not session,
        )
        begun, started = await self._begin(open_request, agents, asked.most, message=asked.message)
        words = "" if session else asked.task
        given = replace(open_request, session=started.session, task=words, fresh=False)
        async with enter_session(self._sessions, given) as host:
            return _answer(host, await self._go_on(host, given, begun, is_stopped=False), started)

    async def go_on(self, asked: op.ChatNextFields, _peer: Peer) -> Mapping[str, object]:
        """Begin the next turn, or tell that the chat is over.

        `after` is the journal's line of the turn the follower has read, or of the chat's beginning: a
        repeated request gets the same turn. The request's task are the words the chat was begun with, as they
        were given; empty for the journal's.
        """
        open_request = OpenRequest(
            agent="", cwd=asked.cwd, environ=asked.env, task=asked.task, session=asked.session
        )
        async with enter_session(self._sessions, open_request) as host:
            return _answer(host, await self._go_on(host, open_request, asked.after, is_stopped=asked.stop))

    async def _begin(
        self, open_request: OpenRequest, agents: Sequence[str], most: int, *, message: str
    ) -> tuple[int, ChatStarted]:
        """Journal that `agents` take turns, without beginning one; return that line's number.

        Without agents those of the session go on. A repeated request with the same id of a `message` gets the
        same line. Raises RelayError if one of the agents cannot take part.
        """
        for name in agents:
            await asyncio.to_thread(check_headless, self._services, name, open_request.environ)
        async with hold_session(self._sessions, open_request, message) as found:
            match found:
                case Host():
                    task = await asyncio.to_thread(_redact_task, open_request, found.session.root)
                    return await _write_begin(found, agents, task, most, message), _tell_started(found)
                case TurnStart():
                    known = found
        async with enter_session(
            self._sessions, replace(open_request, session=known.session, fresh=False)
        ) as host:
            return known.number, _tell_started(host)

    async def _go_on(
        self, host: Host, open_request: OpenRequest, after: int, *, is_stopped: bool
    ) -> tuple[TurnNext | ChatOver, StreamCursor]:
        """Begin the next turn; return it with the place before its first line, or the chat's end."""
        chat = _get_chat(host)
        if any(event.number > after for event in host.events if isinstance(event.body, ChatBegun)):
            raise WrongUseError(f"somebody else went on with the chat {host.session.id}")
        known = [number for number in chat.begun if number > after]
        if known:
            return _report_next(host, known[0], len(chat.begun)), StreamCursor(known[0] - 1)
        if is_stopped:
            found: Seat | ChatEnd = ChatEnd("stopped", chat.failure[1])
        else:
            context = await host.runner.build_context(host.session)
            roster = host.session.roster
            found = find_next_seat(chat, context.availability, roster, now=context.now, zone=context.zone)
        if isinstance(found, ChatEnd):
            if host.session.state is not State.ENDED:
                await host.ask(StopAsked(found.why))
            return self._report_over(host, chat, found), StreamCursor(host.session.number)
        is_new = not find_native_id(host.session, found.speaker)
        prompt = build_prompt(chat, found.speaker, found.owner, task=open_request.task, is_new=is_new)
        asked = TurnAsked(found.speaker, prompt, ends=True, seat=found.owner, others=found.others)
        # Not the line after the last one seen: the end of a turn a crash cut off may be written in between.
        begun = await take_turn(host, open_request.pack(), asked)
        return _report_next(host, begun.number, len(chat.begun) + 1), StreamCursor(begun.number - 1)

    def _report_over(self, host: Host, chat: Chat, over: ChatEnd) -> ChatOver:
        now = self._services.clock.now()
        return ChatOver(
            session=host.session.id,
            outcome=over.outcome,
            turns=chat.taken,
            why=over.why,
            resets_at=over.until.isoformat() if over.until is not None else "",
            assumed=over.assumed,
            skipped=over.skipped,
            message=render_chat_end(chat, over, now, self._services.zone),
        )


def _answer(
    host: Host, went_on: tuple[TurnNext | ChatOver, StreamCursor], *before: ChatStarted
) -> Mapping[str, object]:
    event, cursor = went_on
    events = [one.model_dump(mode="json") for one in (*before, event)]
    return {
        "session": host.session.id,
        "events": events,
        "told": asdict(cursor),
        "turn": cursor.number + 1,
        "over": event.type == "chat-end",
    }


def _redact_task(open_request: OpenRequest, root: str) -> str:
    """Return the task without the secrets of its requester: the session has not been given them yet."""
    return redact_in_thread(
        open_request.task, known=gather_secrets(root, open_request.environ, cwd=open_request.cwd)
    )


async def _write_begin(host: Host, agents: Sequence[str], task: str, most: int, message: str) -> int:
    """Journal the line that begins the chat, or continues the session's; return its number."""
    check_free(host.session)
    known = fold_chat(host.events)
    if not agents and known is None:
        raise WrongUseError(f"session {host.session.id} is no chat", hint="Name the agents that are to talk")
    taking_part = tuple(agents) or (known.agents if known is not None else ())
    await host.ask(Outcome((ChatBegun(taking_part, task, most, message),)))
    return max(event.number for event in host.events if isinstance(event.body, ChatBegun))


def _tell_started(host: Host) -> ChatStarted:
    session = host.session
    return ChatStarted(
        session=session.id,
        agents=_get_chat(host).agents,
        folder=session_folder(session),
        at=session.updated_at.isoformat(),
    )


def _get_chat(host: Host) -> Chat:
    chat = fold_chat(host.events)
    if chat is None:
        raise WrongUseError(f"session {host.session.id} is no chat")
    return chat


def _report_next(host: Host, line: int, count: int) -> TurnNext:
    body = host.events[line - 1].body
    assert isinstance(body, TurnBegun)  # noqa: S101 - the chat's fold took its number
    return TurnNext(agent=body.seat, speaker=body.agent, number=count)
