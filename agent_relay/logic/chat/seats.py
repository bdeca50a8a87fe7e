"""Who has the next turn of a chat: everybody in their order, somebody else in the seat of who rests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Literal

from agent_relay.logic.chat.fold import Chat
from agent_relay.logic.policy import Availability, choose
from agent_relay.logic.succession import HEADLESS

_FEWEST = 2
"""Below that many nobody is left to talk to."""
_MOST_RESTS = 3
"""How many turns a seat, on average, may be given up to a limit before the chat is over."""
_AGAIN = "limits are met again and again"


@dataclass(frozen=True, slots=True)
class Seat:
    """The turn of the agent `owner` is `speaker`'s; `others` have turns of their own and may not take it."""

    owner: str
    speaker: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """The chat is over; `until` is the earliest reset where it rests, `None` where none is known."""

    outcome: Literal["agreed", "turns", "resting", "failed", "stopped"]
    why: str = ""
    until: datetime | None = None
    skipped: tuple[str, ...] = ()


def find_next(
    chat: Chat,
    availability: Mapping[str, Availability],
    roster: Sequence[str],
    *,
    now: datetime,
    zone: tzinfo,
) -> Seat | Over:
    """The seat whose turn it is, or why there is none.

    The seat of an agent that rests is taken by the next of the order who has none; where there is nobody,
    it is passed over.
    """
    outcome, why = chat.failure
    if outcome:
        return Over("stopped" if outcome == "stopped" else "failed", why)
    known = {name: _know(chat, name, state) for name, state in availability.items()}
    seated, skipped, resets = _seat(chat, known, roster, now=now, zone=zone)
    speakers = set(seated.values())
    if len(speakers) < _FEWEST:
        return Over("resting", "nobody is left to talk to", min(resets, default=None), tuple(skipped))
    if speakers <= chat.agreed:
        return Over("agreed")
    if chat.taken >= chat.most > 0:
        return Over("turns")
    if len(chat.begun) - chat.taken > _MOST_RESTS * len(chat.agents):
        # A limit whose reset has passed, but that is met again at once, would be asked for ever.
        return Over("resting", _AGAIN, min(resets, default=None), (_AGAIN,))
    start = chat.agents.index(chat.last) + 1 if chat.last in chat.agents else 0
    owner = next(name for name in (*chat.agents[start:], *chat.agents) if name in seated)
    others = dict.fromkeys((*chat.agents, *seated.values()))
    mine = {owner, seated[owner]}
    return Seat(owner, seated[owner], tuple(name for name in others if name not in mine))


def _know(chat: Chat, name: str, state: Availability) -> Availability:
    """Who takes part is believed to be signed in; a limit met here counts before the ledger knows of it."""
    if name in chat.limits and not state.resting:
        state = replace(state, resting=True, rests_until=chat.limits[name], scope=state.scope or "limit")
    return replace(state, signed_in=state.signed_in or name in chat.agents)


def _seat(
    chat: Chat, known: Mapping[str, Availability], roster: Sequence[str], *, now: datetime, zone: tzinfo
) -> tuple[dict[str, str], list[str], list[datetime]]:
    """Who speaks in whose seat, why others do not, and the resets of those who rest."""
    seated: dict[str, str] = {}
    skipped: list[str] = []
    resets: list[datetime] = []
    for owner in chat.agents:
        taken = {*chat.agents, *seated.values()} - {owner}
        order = [name for name in dict.fromkeys((owner, *roster)) if name not in taken]
        choice = choose(order, known, current="", now=now, zone=zone, needs=(HEADLESS,))
        skipped += [why for why in choice.skipped if why not in skipped]
        resets += [choice.earliest] if choice.earliest is not None else []
        if choice.successor:
            seated[owner] = choice.successor
    return seated, skipped, resets
