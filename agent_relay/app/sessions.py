"""Every session at work on this machine: found, begun, recovered after a crash, stopped."""

import asyncio
import json
import logging
import os
from dataclasses import dataclass, field
from datetime import tzinfo

from agent_relay.app.adoption import build_history, find_adoptable
from agent_relay.app.ground import Ground
from agent_relay.app.host import Host
from agent_relay.app.keeping import KeptJournal
from agent_relay.app.legs import Luggage
from agent_relay.app.stage import Stage
from agent_relay.domain.effect import Asked, Restarted, StopAsked
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.event import SessionCreated
from agent_relay.domain.ids import is_ulid
from agent_relay.domain.session import Session, State
from agent_relay.logic.fold import fold_events
from agent_relay.logic.outcome import Outcome
from agent_relay.logic.redact import redact_text
from agent_relay.logic.succession import begin_leg
from agent_relay.system.files import read_bounded, write_atomic
from agent_relay.system.folders import ensure_private
from agent_relay.system.git import find_root
from agent_relay.system.journal import Journal, read_events
from agent_relay.system.project import open_project, session_folder
from agent_relay.system.secrets import gather_secrets

_log = logging.getLogger(__name__)
_INDEX_LIMIT_BYTES = 64 << 10
_START_S = 20.0
"""How long a leg may take from exec to a living process before `open` gives up waiting for it."""


@dataclass(frozen=True, slots=True)
class OpenWish:
    """What a terminal asks for: an agent at work in `cwd`, with the user's environment."""

    agent: str
    cwd: str
    environ: dict[str, str] = field(repr=False)
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    task: str = ""
    session: str = ""
    fresh: bool = False
    source: str = ""
    focus: str = ""
    model: str = ""
    force: bool = False
    launch: bool = True


@dataclass(frozen=True, slots=True)
class Room:
    """One session at work: its host and the stage its effects are performed on."""

    host: Host
    stage: Stage

    @property
    def session(self) -> Session:
        """The session now."""
        return self.host.session

    @property
    def trouble(self) -> str:
        """What keeps the session from going on, for the user; empty for nothing."""
        return self.host.trouble or self.stage.trouble


class Sessions:
    """The registry. One instance per daemon; use it from the event loop only."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._rooms: dict[str, Room] = {}
        self._opening = asyncio.Lock()
        self._changes = asyncio.Condition()
        self._wakers: set[asyncio.Task[None]] = set()

    @property
    def zone(self) -> tzinfo:
        """The zone times are shown in."""
        return self._ground.zone

    async def start(self) -> None:
        """Every session the index names and that has not ended is at work again."""
        for session_id, root in await asyncio.to_thread(_read_index, self._ground.folders.sessions):
            try:
                await self._take_up(session_id, root)
            except RelayError as error:
                _log.warning("not-recovered session=%s why=%s", session_id, error.sentence)

    async def stop(self) -> None:
        """Nothing runs in this process any more; agents and holders are left as they are."""
        for room in self._rooms.values():
            await room.stage.close()
            await room.host.close()

    def get(self, session_id: str) -> Room:
        """The session's room. Raises WrongUseError where no such session is at work."""
        room = self._rooms.get(session_id)
        if room is None:
            raise WrongUseError(f"no session {session_id[:26]} is at work", hint="See: agent-relay sessions")
        return room

    def at_work(self) -> list[Session]:
        """The sessions that have not ended, newest change first."""
        living = [room.session for room in self._rooms.values() if room.session.state is not State.ENDED]
        return sorted(living, key=lambda session: session.updated_at, reverse=True)

    def socket_of(self, leg_id: str) -> str:
        """Where the leg's holder listens."""
        return f"{self._ground.folders.legs}/{leg_id}/sock"

    async def open(self, wish: OpenWish) -> Session:
        """The session with `wish.agent` at work, or on its way: attached to, handed over or begun."""
        self._ground.get_adapter(wish.agent)
        root = await asyncio.to_thread(_find_root, wish.cwd)
        async with self._opening:
            room = await self._find(wish, root)
            if room is None:
                return await self._begin(wish, root)
            if wish.source:
                raise WrongUseError(
                    f"session {room.session.id} is here already", hint="Add --new to begin another one"
                )
            room.stage.take(_pack(wish), wish.task)
            return await self._go_on(room, wish)

    async def use(self, session_id: str, agent: str, *, focus: str = "", force: bool = False) -> Session:
        """The session, a handoff to `agent` begun; without a name to the next one of its order.

        Raises RelayError where it cannot be.
        """
        if agent:
            self._ground.get_adapter(agent)
        return await self.get(session_id).host.ask(Asked(agent, focus=redact_text(focus).text, force=force))

    async def stop_session(self, session_id: str) -> Session:
        """The session, its end begun."""
        return await self.get(session_id).host.ask(StopAsked("stopped by hand"))

    async def _find(self, wish: OpenWish, root: str) -> Room | None:
        if wish.session:
            if wish.session not in self._rooms:
                await self._reopen(wish.session)
            return self.get(wish.session)
        if wish.fresh:
            return None
        here = [session for session in self.at_work() if session.root == root]
        return self._rooms[here[0].id] if here else None

    async def _begin(self, wish: OpenWish, root: str) -> Session:
        native = None
        if wish.source:
            where = (self._ground, wish.source, wish.cwd, wish.environ)
            native = await asyncio.to_thread(find_adoptable, *where)
        session_id = self._ground.create_id()
        roster = await asyncio.to_thread(self._ground.build_roster, wish.agent, root)
        known = await asyncio.to_thread(gather_secrets, root, wish.environ, cwd=wish.cwd)
        body = SessionCreated(session_id, root, wish.cwd, roster, redact_text(wish.task, known=known).text)
        journal = await asyncio.to_thread(self._create, body)
        room = self._add(journal)
        room.stage.take(_pack(wish), wish.task)
        if native is not None:
            await room.host.ask(Outcome(build_history(self._ground.create_id(), wish.source, native)))
            return await self._go_on(room, wish)
        world = await room.stage.build_world(room.session)
        await room.host.ask(begin_leg(room.session, wish.agent, world))
        return await self._started(room)

    async def _go_on(self, room: Room, wish: OpenWish) -> Session:
        session = room.session
        living = session.living_leg
        if living is not None and living.agent == wish.agent:
            return session
        if living is None and session.agent == wish.agent:
            world = await room.stage.build_world(session)
            await room.host.ask(begin_leg(session, wish.agent, world, resumes=True))
            return await self._started(room)
        return await room.host.ask(Asked(wish.agent, focus=redact_text(wish.focus).text, force=wish.force))

    async def _started(self, room: Room) -> Session:
        """The session once its leg lives. Raises RelayError where it did not start."""

        def is_decided() -> bool:
            leg = room.session.leg
            return leg is not None and (leg.child_pid > 0 or leg.is_over)

        try:
            async with asyncio.timeout(_START_S), self._changes:
                await self._changes.wait_for(is_decided)
        except TimeoutError:
            raise RelayError(f"{room.session.agent} has not started within {_START_S:.0f} s") from None
        session = room.session
        if session.leg is not None and session.leg.is_over and session.leg.how == "unstarted":
            raise RelayError(session.why or f"{session.agent} could not be started")
        return session

    def _create(self, body: SessionCreated) -> Journal:
        folder = session_folder(open_project(body.root), body.session)
        journal = Journal(f"{folder}/journal.jsonl")
        try:
            event = journal.append(body, at=self._ground.clock.now(), generation=0, durable=True)
            ensure_private(self._ground.folders.state)
            index = ensure_private(self._ground.folders.sessions)
            entry = {"root": body.root, "cwd": body.cwd}
            write_atomic(f"{index}/{body.session}.json", json.dumps(entry).encode(), durable=False)
        except RelayError:
            journal.close()
            raise
        journal.events = [event]
        return journal

    async def _take_up(self, session_id: str, root: str) -> None:
        """The session is at work again if its journal says that it has not ended."""
        folder = f"{root}/.agent-relay/sessions/{session_id}"
        session = fold_events(await asyncio.to_thread(read_events, f"{folder}/journal.jsonl"))
        if session is None or session.state is State.ENDED:
            return
        room = self._add(await asyncio.to_thread(Journal, f"{folder}/journal.jsonl"))
        lives = await room.stage.adopt(room.session)
        room.host.tell(Restarted(lives))

    async def _reopen(self, session_id: str) -> None:
        """An ended session is at work again, without a leg."""
        known = dict(await asyncio.to_thread(_read_index, self._ground.folders.sessions))
        root = known.get(session_id)
        if root is None:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        path = f"{root}/.agent-relay/sessions/{session_id}/journal.jsonl"
        if not await asyncio.to_thread(os.path.exists, path):
            raise RelayError(f"the journal {path} is gone")
        self._add(await asyncio.to_thread(Journal, path))

    def _add(self, journal: Journal) -> Room:
        stage = Stage(self._ground)
        host = Host(
            KeptJournal(journal),
            self._ground.clock,
            build_world=stage.build_world,
            perform=stage.perform,
            redact=stage.redact,
            changed=self._changed,
            report=self._ground.report,
        )
        stage.host = host
        room = Room(host, stage)
        self._rooms[host.session.id] = room
        host.start()
        return room

    def _changed(self, session: Session) -> None:
        self._ground.teller.tell(session.id)
        waker = asyncio.create_task(self._wake(), name="changed")
        self._wakers.add(waker)
        waker.add_done_callback(self._wakers.discard)

    async def _wake(self) -> None:
        async with self._changes:
            self._changes.notify_all()


def _read_index(folder: str) -> list[tuple[str, str]]:
    """(session id, root) of every index entry that can be read, oldest first."""
    entries = []
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    for name in names:
        session_id = name.removesuffix(".json")
        if not is_ulid(session_id):
            continue
        try:
            entry = json.loads(read_bounded(f"{folder}/{name}", limit_bytes=_INDEX_LIMIT_BYTES))
            entries.append((session_id, str(entry["root"])))
        except (RelayError, OSError, ValueError, KeyError, TypeError):
            _log.warning("index-entry-unreadable session=%s", session_id)
    return entries


def _find_root(cwd: str) -> str:
    """The folder that holds `.agent-relay` for work in `cwd`. Raises WrongUseError for no folder."""
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise WrongUseError(f"{cwd} is not a folder")
    return find_root(cwd) or os.path.realpath(cwd)


def _pack(wish: OpenWish) -> Luggage:
    return Luggage(
        wish.environ, agent=wish.agent, rows=wish.rows, cols=wish.cols, args=wish.args, model=wish.model
    )
