"""An agent's own record of a leg: find it, read it, tell whether the user's own program uses it."""

import asyncio
import logging
import os
from collections.abc import Mapping

from agent_relay.agents.adapters import LoadedAdapter, find_program
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import Facts, NativeSession
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import AgentName
from agent_relay.engine.services import Services
from agent_relay.packet.checkpoint_facts import restore_facts
from agent_relay.session.ownership import check_program, is_only_adopted
from agent_relay.session.views.messages import session_folder
from agent_relay.sources.native_sessions import ConversationOwner, find_holding, find_running, find_transcript
from agent_relay.sources.transcript_reader import is_intact, read_facts
from agent_relay.store.checkpoints import find_newest, read_checkpoints
from agent_relay.system.processes import is_alive

_log = logging.getLogger(__name__)


def gather_facts(loaded: LoadedAdapter, session: Session, leg: Leg, environ: Mapping[str, str]) -> Facts:
    """Return what the leg's transcript says; only the reason if it cannot be read."""
    try:
        native = find_own(leg) or look_for(loaded, session, leg, environ)
    except RelayError as error:
        return restore_lost(_tell_unread(leg, error), loaded, session, leg, path="")
    facts = read_own_facts(loaded, leg, native)
    return restore_lost(facts, loaded, session, leg, path=native.path if native is not None else "")


def restore_lost(facts: Facts, loaded: LoadedAdapter, session: Session, leg: Leg, *, path: str) -> Facts:
    """Return the facts with what checkpoints kept of the leg's conversation, if its record has lost some.

    `path` is where the record is now; empty if it was not found, or is not to be read.
    """
    spec = loaded.adapter.transcript
    if spec is None:
        return facts
    folder, native_id = session_folder(session), leg.native_id or facts.native_id
    newest = find_newest(folder, leg=leg.id, agent=leg.agent, native_id=native_id)
    if newest is None:
        return facts
    is_read = bool(path) and not facts.unread
    if is_read and is_intact(spec.reader, newest.cursor, path, native_id=native_id):
        return facts
    kept = read_checkpoints(folder, leg=leg.id, agent=leg.agent, native_id=native_id)
    why = facts.unread or f"{leg.agent}'s own record {'has lost what was in it' if path else 'is gone'}"
    return restore_facts(facts, kept, why=why) if kept else facts


def find_native(
    loaded: LoadedAdapter, session: Session, leg: Leg, environ: Mapping[str, str]
) -> NativeSession | None:
    """Return the agent's own session of this leg; `None` if it left none, or none can be identified."""
    try:
        return look_for(loaded, session, leg, environ)
    except RelayError:
        return None


def look_for(
    loaded: LoadedAdapter, session: Session, leg: Leg, environ: Mapping[str, str]
) -> NativeSession | None:
    """Find what `find_native` returns, but raise RelayError if a possible conversation cannot be read.

    A leg that took no prompt has no conversation yet: the newest one of its folder is somebody else's. If its
    agent will name its own, none is guessed while the agent lives.
    """
    adapter, spec = loaded.adapter, loaded.adapter.transcript
    if spec is None:
        return None
    lives = is_alive(leg.child_pid, leg.child_born)
    if not leg.native_id:
        names_itself = not spec.held_open and any("native_id" in source.names for source in adapter.sources)
        if not (leg.was_busy or leg.headless) or (lives and names_itself):
            return None
    return find_transcript(
        spec,
        native_id=leg.native_id,
        cwd=session.cwd,
        # A conversation that is known by name is the leg's own before the leg has written a word into it.
        since=None if leg.native_id else leg.starting_at,
        home=environ.get("HOME", ""),
        environ=environ,
        owner=_find_owner(session, leg, pid=leg.child_pid if lives else 0, opening=adapter.deliver.opening),
    )


def _find_owner(session: Session, leg: Leg, *, pid: int, opening: str) -> ConversationOwner:
    """Return what tells the leg's own conversation from others in its folder."""
    others = frozenset(one.native_id for one in session.legs if one.id != leg.id and one.native_id)
    typed = (session.task if leg.was_given else "", opening if leg.handoff else "")
    return ConversationOwner(pid, others, tuple(text for text in typed if text.strip()))


def read_own_facts(loaded: LoadedAdapter, leg: Leg, native: NativeSession | None) -> Facts:
    """Return what the leg's own transcript says; only the reason if it cannot be read."""
    spec = loaded.adapter.transcript
    if spec is None or native is None:
        return Facts(leg.agent, native_id=leg.native_id)
    try:
        return read_facts(spec.reader, native.path, native_id=native.native_id, agent=leg.agent)
    except RelayError as error:
        return _tell_unread(leg, error)


def _tell_unread(leg: Leg, error: RelayError) -> Facts:
    _log.warning("transcript-unread leg=%s why=%s", leg.id, type(error).__name__)
    return Facts(leg.agent, native_id=leg.native_id, unread=error.sentence)


def find_own(leg: Leg) -> NativeSession | None:
    """Return the transcript the leg itself named if it still exists: an adopted one is older than its leg."""
    if not leg.transcript or not os.path.exists(leg.transcript):
        return None
    return NativeSession(leg.transcript, leg.native_id, "", "", leg.starting_at)


def list_owners(
    services: Services, agent: str, native: NativeSession, *, cwd: str, environ: Mapping[str, str]
) -> list[tuple[int, int]]:
    """Return the processes of the agent's own program that may use `native`, as (pid, born). Reads /proc."""
    loaded = services.get_adapter(agent)
    spec, program = loaded.adapter.transcript, find_program(loaded, environ)
    if spec is not None and spec.held_open:
        return find_holding(native.path)
    if program is None:
        return []
    return find_running(program, cwd, by=native.changed_at, now=services.clock.now())


def list_adopted_owners(
    services: Services, session: Session, environ: Mapping[str, str]
) -> list[tuple[int, int]]:
    """Return the same for the conversation the session adopted; nothing once relay's own agents use it."""
    if not is_only_adopted(session):
        return []
    leg = session.legs[0]
    loaded = services.adapters.get(AgentName(leg.agent))
    spec = loaded.adapter.transcript if loaded is not None else None
    if spec is None:
        # A packet that was brought from elsewhere has no program here.
        return []
    home = environ.get("HOME", "")
    native = find_transcript(spec, native_id=leg.native_id, cwd=session.cwd, home=home, environ=environ)
    if native is None:
        return []
    return list_owners(services, leg.agent, native, cwd=session.cwd, environ=environ)


async def check_owners(
    services: Services, session: Session, environ: Mapping[str, str], successor: str
) -> None:
    """Raise WrongUseError if a program of the user's still uses what the session adopted.

    The last moment to check is right before a successor starts, however that was requested.
    """
    try:
        found = await asyncio.to_thread(list_adopted_owners, services, session, environ)
    except RelayError:
        # What cannot be found any more cannot be told from what is gone.
        return
    pids = [pid for pid, _ in found]
    agent = session.legs[0].agent
    check_program(agent, session.cwd, pids, successor=successor, session=session.id, force=False)
