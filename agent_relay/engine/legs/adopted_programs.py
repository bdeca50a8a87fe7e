"""Find out whether a program the user started still uses the native session that a session adopted."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_relay.agents.adapters import find_program
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.values import AgentName
from agent_relay.engine.services import Services
from agent_relay.session.ownership import check_program, is_only_adopted
from agent_relay.sources.native_sessions import find_holding, find_running

if TYPE_CHECKING:
    from agent_relay.domain.facts import NativeSession


def list_owners(
    services: Services, agent: str, native: "NativeSession", *, cwd: str, environ: Mapping[str, str]
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
    # Readers of transcripts take long to load, and few sessions are adopted.
    from agent_relay.sources.native_sessions import find_transcript

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
    if not is_only_adopted(session):
        return
    try:
        found = await asyncio.to_thread(list_adopted_owners, services, session, environ)
    except RelayError:
        # What cannot be found any more cannot be told from what is gone.
        return
    pids = [pid for pid, _ in found]
    agent = session.legs[0].agent
    check_program(agent, session.cwd, pids, successor=successor, session=session.id, force=False)
