"""A session's first lines: what it is for, who may work in it, and what it goes on from."""

import asyncio

from agent_relay.app.adoption import build_history, find_adoptable
from agent_relay.app.ground import Ground
from agent_relay.app.index import create_journal
from agent_relay.app.wishes import OpenWish
from agent_relay.domain.event import SessionCreated
from agent_relay.logic.outcome import Outcome
from agent_relay.logic.redact import redact_text
from agent_relay.logic.wording import render_resting_note
from agent_relay.system.journal import Journal
from agent_relay.system.secrets import gather_secrets


async def create_session(ground: Ground, wish: OpenWish, root: str) -> tuple[Journal, Outcome]:
    """The journal of a new session in `root`, and the past it is to be given: of an adopted one, or none."""
    native = None
    if wish.source:
        native = await asyncio.to_thread(find_adoptable, ground, wish)
    roster = await asyncio.to_thread(ground.build_roster, wish.agent, root)
    known = await asyncio.to_thread(gather_secrets, root, wish.environ, cwd=wish.cwd)
    task = redact_text(wish.task, known=known).text
    body = SessionCreated(ground.create_id(), root, wish.cwd, roster, task)
    journal = await asyncio.to_thread(create_journal, ground.folders, body, at=ground.clock.now())
    past = build_history(ground.create_id(), wish.source, native) if native is not None else ()
    return journal, Outcome(past)


async def find_note(ground: Ground, wish: OpenWish) -> str:
    """That the agent of a new session rests, by what the ledger says; empty where it does not."""
    state = (await asyncio.to_thread(ground.read_availability, wish.environ))[wish.agent]
    now = ground.clock.now()
    return render_resting_note(wish.agent, state.rests_until, now, ground.zone) if state.resting else ""
