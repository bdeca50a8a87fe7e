"""What onlookers are told of sessions at work, as it changes: screens, and what only the daemon knows."""

import asyncio
import json
from collections.abc import Mapping

from agent_relay.app.pulse import wait_for
from agent_relay.app.room import Room
from agent_relay.app.sessions import Sessions
from agent_relay.domain.serving import Handler, Peer, Request
from agent_relay.domain.watch_event import WindowUsed
from agent_relay.logic.watching.live import Live, build_context, cut_screen, render_live

_LISTEN_S = 20.0
"""How long an answer with nothing in it is put off."""
_ENOUGH = 384 << 10
"""Characters of one answer; with one more session it stays below a line's limit."""


class Onlooking:
    """Keeps nothing for whoever looks on: every question says up to which beat its asker was told."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def follow(
        self, root: str, session: str, seen: int, *, is_patient: bool
    ) -> tuple[list[dict[str, object]], int]:
        """The sessions at work that changed since the beat `seen`, and the newest beat among them.

        Of one working tree or one session where those are named. Where nothing changed, the answer waits
        for that a while, if its asker is patient.
        """
        rooms = self._sessions.rooms
        deadline = asyncio.get_running_loop().time() + _LISTEN_S
        while True:
            beat = rooms.pulse.listen()
            changed = [
                room
                for room in sorted(rooms, key=lambda room: room.pulse.number)
                if room.pulse.number > seen
                and root in {"", room.session.root}
                and session in {"", room.session.id}
            ]
            left_s = deadline - asyncio.get_running_loop().time()
            if changed or left_s <= 0 or not is_patient:
                return _tell(changed, seen)
            await wait_for(beat, left_s)


def _tell(rooms: list[Room], seen: int) -> tuple[list[dict[str, object]], int]:
    told: list[dict[str, object]] = []
    size = 0
    for room in rooms:
        live = render_live(build_live(room))
        told.append(live)
        seen = room.pulse.number
        size += len(json.dumps(live))
        if size >= _ENOUGH:
            break
    return told, seen


def build_live(room: Room) -> Live:
    """The room's session as its daemon knows it."""
    session = room.session
    leg = session.living_leg
    live = room.stage.find_live(leg.id) if leg is not None else None
    if leg is None or live is None:
        return Live(session.id, session.number, trouble=room.trouble)
    watch = live.watch
    title, rows = cut_screen(watch.screen) if watch.screen is not None else ("", ())
    reading = watch.reading
    windows = tuple(
        WindowUsed(
            name=one.window.name,
            minutes=one.minutes,
            used_percent=one.used,
            resets_at=one.resets_at.isoformat(),
        )
        for one in watch.windows
    )
    return Live(
        session=session.id,
        number=session.number,
        leg=leg.id,
        title=title,
        rows=rows,
        trouble=room.trouble,
        model=reading.model if reading is not None else "",
        context=build_context(reading.used, reading.room) if reading is not None else None,
        windows=windows,
    )


def build_watch_handlers(sessions: Sessions) -> Mapping[str, Handler]:
    """The operations by name."""
    onlooking = Onlooking(sessions)

    async def follow(request: Request, _peer: Peer) -> Mapping[str, object]:
        told, seen = await onlooking.follow(
            request.text("root", ""),
            request.text("session", ""),
            request.number("seen", 0),
            is_patient=request.flag("wait"),
        )
        return {"sessions": told, "seen": seen}

    return {"watch.follow": follow}
