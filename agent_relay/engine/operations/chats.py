"""The operations on chats: begin one, and go on with it turn by turn while somebody follows.

A chat is no process of its own. Its follower asks for the next turn when one is over, and the journal tells
which agent's turn that is: an agent that works while nobody follows costs money.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_relay.agents.launch import get_program
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.events.turn import ChatBegun, TurnBegun
from agent_relay.domain.inputs import StopAsked, TurnAsked
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.operations import StreamCursor
from agent_relay.domain.protocol.requests import Handler, Peer
from agent_relay.domain.protocol.run_output import ChatOver, ChatStarted, TurnNext
from agent_relay.domain.session import Leg
from agent_relay.domain.state import State
from agent_relay.engine._turn_stream import render_cursor
from agent_relay.engine.legs.headless import load_for
from agent_relay.engine.publishing.redaction import redact_in_thread
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.active_session import ActiveSession
from agent_relay.engine.sessions.lifecycle import SessionLifecycle
from agent_relay.engine.sessions.open_request import OpenRequest
from agent_relay.engine.sessions.opener import TurnStart, get_newest
from agent_relay.session.handoff.lifecycle import find_native_id
from agent_relay.session.outcome import Outcome
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
from agent_relay.session.views.messages import session_folder
from agent_relay.system.config.secrets import gather_secrets

_MOST_AGENTS = 16


class Chats:
    """Begins the turns of chats; they are followed like all headless turns."""

    def __init__(self, sessions: SessionLifecycle, services: Services) -> None:
        self._sessions = sessions
        self._services = services

    async def begin(
        self, wish: OpenRequest, agents: Sequence[str], most: int, *, message: str = ""
    ) -> tuple[int, ChatStarted]:
        """Journal that `agents` take turns, without beginning one; return that line's number.

        Without agents those of the session go on. A repeated request with the same id of a `message` gets the
        same line. Raises RelayError if one of the agents cannot take part.
        """
        for name in agents:
            leg = Leg("", name, 0, self._services.clock.now(), headless=True)
            await asyncio.to_thread(get_program, load_for(self._services, leg), wish.environ)
        async with self._sessions.opener.hold(wish, message) as found:
            match found:
                case ActiveSession():
                    task = await asyncio.to_thread(_redact_task, wish, found.session.root)
                    return await _write_begin(found, agents, task, most, message), _tell_started(found)
                case TurnStart():
                    known = found
        async with self._sessions.opener.enter(replace(wish, session=known.session, fresh=False)) as room:
            return known.number, _tell_started(room)

    async def go_on(
        self, wish: OpenRequest, after: int, *, is_stopped: bool
    ) -> tuple[TurnNext | ChatOver, StreamCursor]:
        """Begin the next turn and return it with the place before its first line, or return the chat's end.

        `after` is the journal's line of the turn the follower has read, or of the chat's beginning: a
        repeated request gets the same turn. `wish.task` are the words the chat was begun with, as they were
        given; empty for the journal's.
        """
        async with self._sessions.opener.enter(wish) as room:
            return await self._go_on(room, wish, after, is_stopped=is_stopped)

    async def _go_on(
        self, room: ActiveSession, wish: OpenRequest, after: int, *, is_stopped: bool
    ) -> tuple[TurnNext | ChatOver, StreamCursor]:
        chat = _get_chat(room)
        if any(event.number > after for event in room.host.events if isinstance(event.body, ChatBegun)):
            raise WrongUseError(f"somebody else went on with the chat {room.session.id}")
        known = [number for number in chat.begun if number > after]
        if known:
            return _report_next(room, known[0], len(chat.begun)), StreamCursor(known[0] - 1)
        found = ChatEnd("stopped", chat.failure[1]) if is_stopped else await self._find_next(room, chat)
        if isinstance(found, ChatEnd):
            if room.session.state is not State.ENDED:
                await room.host.ask(StopAsked(found.why))
            return self._report_over(room, chat, found), StreamCursor(room.session.number)
        is_new = not find_native_id(room.session, found.speaker)
        prompt = build_prompt(chat, found.speaker, found.owner, task=wish.task, is_new=is_new)
        asked = TurnAsked(found.speaker, prompt, ends=True, seat=found.owner, others=found.others)
        await room.take_turn(wish.pack(), asked)
        room.reading.begin()
        # Not the line after the last one seen: the end of a turn a crash cut off may be written in between.
        begun = get_newest(room)
        return _report_next(room, begun.number, len(chat.begun) + 1), StreamCursor(begun.number - 1)

    async def _find_next(self, room: ActiveSession, chat: Chat) -> Seat | ChatEnd:
        world = await room.stage.build_world(room.session)
        return find_next_seat(chat, world.availability, room.session.roster, now=world.now, zone=world.zone)

    def _report_over(self, room: ActiveSession, chat: Chat, over: ChatEnd) -> ChatOver:
        now = self._services.clock.now()
        return ChatOver(
            session=room.session.id,
            outcome=over.outcome,
            turns=chat.taken,
            why=over.why,
            resets_at=over.until.isoformat() if over.until is not None else "",
            skipped=over.skipped,
            message=render_chat_end(chat, over, now, self._services.zone),
        )


def build_chat_handlers(sessions: SessionLifecycle, services: Services) -> Mapping[str, Handler]:
    """Return the handlers by the names of their requests."""
    chatting = Chats(sessions, services)

    async def begin(asked: op.ChatFields, _peer: Peer) -> Mapping[str, object]:
        agents, session = asked.agents, asked.session
        if len(set(agents)) != len(agents) or len(agents) > _MOST_AGENTS or not (session or len(agents) > 1):
            raise WrongUseError("a chat needs two agents or more, each of them once")
        wish = OpenRequest(
            agent=agents[0] if agents else "",
            cwd=asked.cwd,
            environ=asked.env,
            task=asked.task,
            session=session,
            fresh=not session,
        )
        begun, started = await chatting.begin(wish, agents, asked.most, message=asked.message)
        words = "" if session else wish.task
        given = replace(wish, session=started.session, task=words)
        return _answer(started.session, await chatting.go_on(given, begun, is_stopped=False), started)

    async def go_on(asked: op.ChatNextFields, _peer: Peer) -> Mapping[str, object]:
        wish = OpenRequest(agent="", cwd=asked.cwd, environ=asked.env, task=asked.task, session=asked.session)
        return _answer(wish.session, await chatting.go_on(wish, asked.after, is_stopped=asked.stop))

    return dict((op.CHAT_BEGIN.performed_by(begin), op.CHAT_NEXT.performed_by(go_on)))


def _answer(
    session: str, went_on: tuple[TurnNext | ChatOver, StreamCursor], *before: ChatStarted
) -> Mapping[str, object]:
    event, told = went_on
    events = [one.model_dump(mode="json") for one in (*before, event)]
    return {
        "session": session,
        "events": events,
        "told": render_cursor(told),
        "turn": told.number + 1,
        "over": event.type == "chat-end",
    }


def _redact_task(wish: OpenRequest, root: str) -> str:
    """Return the task without the secrets of its requester: the session has not been given them yet."""
    return redact_in_thread(wish.task, known=gather_secrets(root, wish.environ, cwd=wish.cwd))


async def _write_begin(room: ActiveSession, agents: Sequence[str], task: str, most: int, message: str) -> int:
    """Journal the line that begins the chat, or continues the session's; return its number."""
    check_free(room.session)
    known = fold_chat(room.host.events)
    if not agents and known is None:
        raise WrongUseError(f"session {room.session.id} is no chat", hint="Name the agents that are to talk")
    taking_part = tuple(agents) or (known.agents if known is not None else ())
    await room.host.ask(Outcome((ChatBegun(taking_part, task, most, message),)))
    return max(event.number for event in room.host.events if isinstance(event.body, ChatBegun))


def _tell_started(room: ActiveSession) -> ChatStarted:
    session = room.session
    return ChatStarted(
        session=session.id,
        agents=_get_chat(room).agents,
        folder=session_folder(session),
        at=session.updated_at.isoformat(),
    )


def _get_chat(room: ActiveSession) -> Chat:
    chat = fold_chat(room.host.events)
    if chat is None:
        raise WrongUseError(f"session {room.session.id} is no chat")
    return chat


def _report_next(room: ActiveSession, line: int, count: int) -> TurnNext:
    body = room.host.events[line - 1].body
    assert isinstance(body, TurnBegun)  # noqa: S101 - the chat's fold took its number
    return TurnNext(agent=body.seat, speaker=body.agent, number=count)
