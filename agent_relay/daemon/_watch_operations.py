"""Answer those who watch: the sessions at work that changed, with what only the daemon knows of them."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime

from agent_relay.domain.protocol import watch_output
from agent_relay.domain.protocol.operations import LISTEN_S, WATCH_FOLLOW, Handler, Peer, WatchFields
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.threads import wait_for

_ENOUGH = 384 << 10
"""Characters of one answer; with one more session it stays below a line's limit."""


async def _follow(sessions: SessionRegistry, asked: WatchFields) -> tuple[list[dict[str, object]], int]:
    """Return the sessions at work that changed after change number `seen`, and the newest number.

    Only those of one working tree or one session if these are named. If nothing changed and the requester
    will `wait`, so does the answer, for a while. Nothing is kept for viewers: a request names the newest it
    knows.
    """
    deadline = asyncio.get_running_loop().time() + LISTEN_S
    while True:
        change = sessions.changes.listen()
        changed = [
            host
            for host in sorted(sessions, key=lambda host: host.changes.number)
            if host.changes.number > asked.seen
            and asked.root in {"", host.session.root}
            and asked.session in {"", host.session.id}
        ]
        left_s = deadline - asyncio.get_running_loop().time()
        if changed or left_s <= 0 or not asked.wait:
            return _tell(changed, asked.seen, sessions.services.clock.now())
        await wait_for(change, left_s)


def _tell(hosts: list[Host], seen: int, now: datetime) -> tuple[list[dict[str, object]], int]:
    told: list[dict[str, object]] = []
    size = 0
    for host in hosts:
        live = watch_output.render_live(build_live(host, now))
        told.append(live)
        seen = host.changes.number
        size += len(json.dumps(live))
        if size >= _ENOUGH:
            break
    return told, seen


def build_live(host: Host, now: datetime) -> watch_output.LiveSession:
    """Return the session as its daemon knows it, with the usage windows that have not begun anew."""
    session = host.session
    leg = session.living_leg
    live = host.runner.find_live(leg.id) if leg is not None else None
    if leg is None or live is None:
        return watch_output.LiveSession(session.id, session.number, trouble=host.trouble)
    title, rows = watch_output.cut_screen(live.screen) if live.screen is not None else ("", ())
    reading = live.reading
    windows = tuple(
        watch_output.WindowUsed(
            name=one.window.name,
            minutes=one.minutes,
            used_percent=one.used,
            resets_at=one.resets_at.isoformat(),
            model=one.model,
            source=one.window.source,
            read_at=one.at.isoformat(),
        )
        for one in live.windows
        if one.resets_at > now
    )
    return watch_output.LiveSession(
        session=session.id,
        number=session.number,
        leg=leg.id,
        title=title,
        rows=rows,
        trouble=host.trouble,
        model=reading.model if reading is not None else "",
        context=watch_output.build_context(reading.used, reading.room) if reading is not None else None,
        windows=windows,
    )


def build_watch_handlers(sessions: SessionRegistry) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""

    async def follow(asked: WatchFields, _peer: Peer) -> Mapping[str, object]:
        told, seen = await _follow(sessions, asked)
        return {"sessions": told, "seen": seen}

    return dict((WATCH_FOLLOW.performed_by(follow),))
