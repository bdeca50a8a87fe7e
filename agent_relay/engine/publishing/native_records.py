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
    """Who knows the agents' adapters."""

    def get_adapter(self, agent: str) -> LoadedAdapter:
        """The agent's adapter. Raises RelayError."""
        ...


def gather_facts(ground: Adapters, session: Session, leg: Leg, environ: Mapping[str, str]) -> Facts:
    """What the leg's transcript says; nothing but why where it cannot be read."""
    try:
        native = find_own(leg) or _look_for(ground, session, leg, environ)
    except RelayError as error:
        return _tell_unread(leg, error)
    return read_own_facts(ground.get_adapter(leg.agent), leg, native)


def find_native(
    ground: Adapters, session: Session, leg: Leg, environ: Mapping[str, str]
) -> NativeSession | None:
    """The agent's own session of this leg; `None` where it left none, or none can be told."""
    try:
        return _look_for(ground, session, leg, environ)
    except RelayError:
        return None


def _look_for(
    ground: Adapters, session: Session, leg: Leg, environ: Mapping[str, str]
) -> NativeSession | None:
    """The same; raises RelayError where one that it might be cannot be read.

    A leg that took no prompt has no conversation yet: the newest one of its folder is somebody else's. One
    whose agent will name its own is not guessed at while it lives.
    """
    adapter = ground.get_adapter(leg.agent).adapter
    spec = adapter.transcript
    if spec is None:
        return None
    lives = is_alive(leg.child_pid, leg.child_born)
    if not leg.native_id:
        is_told = not spec.held_open and any("native_id" in source.names for source in adapter.sources)
        if not (leg.was_busy or leg.headless) or (lives and is_told):
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
    """What tells the leg's own conversation from others in its folder."""
    others = frozenset(one.native_id for one in session.legs if one.id != leg.id and one.native_id)
    typed = (session.task if leg.was_given else "", opening if leg.handoff else "")
    return ConversationOwner(pid, others, tuple(text for text in typed if text.strip()))


def read_own_facts(loaded: LoadedAdapter, leg: Leg, native: NativeSession | None) -> Facts:
    """What the predecessor's transcript says; nothing but why where it cannot be read."""
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
    """The transcript the leg itself named, where it still stands: an adopted one is older than its leg."""
    if not leg.transcript or not os.path.exists(leg.transcript):
        return None
    return NativeSession(leg.transcript, leg.native_id, "", "", leg.starting_at)
