"""A session's first lines: what it is for, who may work in it, and what it goes on from."""

import asyncio
from collections.abc import Iterable

from agent_relay.app.adoption import check_program_ended, find_adoptable
from agent_relay.app.ground import Ground
from agent_relay.app.index import create_journal
from agent_relay.app.redaction import redact_wish
from agent_relay.app.wishes import OpenWish
from agent_relay.domain.event import SessionCreated
from agent_relay.domain.session import Session
from agent_relay.domain.versions import is_newer
from agent_relay.logic.adopting import build_history, check_conversations
from agent_relay.logic.outcome import Outcome
from agent_relay.logic.wording import render_left_out, render_newer, render_resting_note
from agent_relay.system.agent_versions import claim_first_notice
from agent_relay.system.journal import Journal
from agent_relay.system.secrets import gather_secrets


async def create_session(
    ground: Ground, wish: OpenWish, root: str, at_work: Iterable[Session]
) -> tuple[Journal, Outcome]:
    """The journal of a new session in `root`, and the past it is to be given: of an adopted one, or none.

    Raises WrongUseError for a past that one of the sessions `at_work` goes on with already, and
    ConfigurationError while the user's file has a mistake: an older one is not what they want.
    """
    await asyncio.to_thread(ground.check_config)
    native = None
    if wish.source:
        native = await asyncio.to_thread(find_adoptable, ground, wish)
        check_conversations(wish.source, (native.native_id,), at_work, successor=wish.agent)
        if wish.launch:
            await asyncio.to_thread(check_program_ended, ground, wish, native)
    roster = await asyncio.to_thread(ground.build_roster, wish.agent, root)
    known = await asyncio.to_thread(gather_secrets, root, wish.environ, cwd=wish.cwd)
    task = await redact_wish(wish.task, known=known)
    body = SessionCreated(ground.create_id(), root, wish.cwd, roster, task)
    journal = await asyncio.to_thread(create_journal, ground.folders, body, at=ground.clock.now())
    past = build_history(ground.create_id(), wish.source, native) if native is not None else ()
    return journal, Outcome(past)


async def find_note(ground: Ground, wish: OpenWish) -> str:
    """Return what to know of a new session: adapters left out, an agent that rests or is newer than known.

    Empty for nothing. The agent's rest is what the ledger says.
    """
    state = (await asyncio.to_thread(ground.read_availability, wish.environ))[wish.agent]
    now = ground.clock.now()
    rests = render_resting_note(wish.agent, state.rests_until, now, ground.zone) if state.resting else ""
    left_out = [(one.name, one.sentence) for one in ground.catalog.broken]
    newer = await asyncio.to_thread(_find_newer, ground, wish)
    return " ".join(note for note in (render_left_out(left_out), rests, newer) if note)


def _find_newer(ground: Ground, wish: OpenWish) -> str:
    """Return that the agent is newer than what this release was tried with, once for each version."""
    loaded = ground.fit_installed(wish.agent, wish.environ)
    version, newest = loaded.version, loaded.adapter.newest_tested
    if not is_newer(version, newest) or not claim_first_notice(
        wish.agent, version, ground.folders.agent_versions
    ):
        return ""
    return f"→ {render_newer(wish.agent, version, newest)}"


def find_config_note(ground: Ground) -> str:
    """Return that a session at work goes by an older configuration than the file; empty where it does not."""
    problem = ground.followed_config.find_problem()
    return f"→ The earlier settings still apply: {problem.sentence}" if problem is not None else ""
