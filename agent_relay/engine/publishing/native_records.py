"""Finds and reads the transcript an agent itself recorded of a leg."""

import logging
import os
from collections.abc import Mapping
from typing import Protocol

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import Facts, NativeSession
from agent_relay.domain.session import Leg, Session
from agent_relay.sources.native_sessions import ConversationOwner, find_transcript
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.system.processes import is_alive

_log = logging.getLogger(__name__)


class Adapters(Protocol):
    """Gives access to the agents' adapters."""

    def get_adapter(self, agent: str) -> LoadedAdapter:
        """Return the agent's adapter. Raise RelayError if there is none."""
        ...


def gather_facts(services: Adapters, session: Session, leg: Leg, environ: Mapping[str, str]) -> Facts:
    """Return what the leg's transcript says; only the reason if it cannot be read."""
    try:
        native = find_own(leg) or _look_for(services, session, leg, environ)
    except RelayError as error:
        return _tell_unread(leg, error)
    return read_own_facts(services.get_adapter(leg.agent), leg, native)


def find_native(
    services: Adapters, session: Session, leg: Leg, environ: Mapping[str, str]
) -> NativeSession | None:
    """Return the agent's own session of this leg; `None` if it left none, or none can be identified."""
    try:
        return _look_for(services, session, leg, environ)
    except RelayError:
        return None


def _look_for(
    services: Adapters, session: Session, leg: Leg, environ: Mapping[str, str]
) -> NativeSession | None:
    """Find what `find_native` returns, but raise RelayError if a possible conversation cannot be read.

    A leg that took no prompt has no conversation yet: the newest one of its folder is somebody else's. If its
    agent will name its own, none is guessed while the agent lives.
    """
    adapter = services.get_adapter(leg.agent).adapter
    spec = adapter.transcript
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
        since=leg.starting_at,
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
