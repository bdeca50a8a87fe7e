"""From a session's journal to its chat: who takes part, what was said, and how far it has come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent_relay.domain.event import Event, LegStarting, SignalSeen
from agent_relay.domain.turn_event import ChatBegun, TurnBegun, TurnEnded
from agent_relay.logic.fold import is_limit
from agent_relay.logic.moments import parse_moment

AGREED = "AGREED"
"""The line an agent ends with when it has nothing to add."""
_MARKUP = "*_`~#> \t.!"


@dataclass(frozen=True, slots=True)
class Message:
    """What `speaker` said; the user where that is empty."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat as its session's journal tells it. The last six are since it was last begun or gone on with.

    `heard` is how many of the messages each agent knows: those before its last answer. `last` is the seat
    of the last turn that was taken or passed over, empty before the first.
    `begun` counts the turns begun, `taken` those that came to a good end; of those, `agreed` are the
    speakers that had nothing to add since somebody last did. `limits` are agents that met a limit, and
    until when, `None` for unknown. `failure` is the outcome and reason of a turn that ended the chat.
    """

    agents: tuple[str, ...]
    task: str
    messages: tuple[Message, ...] = ()
    heard: Mapping[str, int] = field(default_factory=dict)
    last: str = ""
    most: int = 0
    begun: int = 0
    taken: int = 0
    agreed: frozenset[str] = frozenset()
    limits: Mapping[str, datetime | None] = field(default_factory=dict)
    failure: tuple[str, str] = ("", "")


def fold_chat(events: Iterable[Event]) -> Chat | None:
    """The chat of a journal; `None` where none was begun in the session."""
    chat: Chat | None = None
    seat = ""
    agents: dict[str, str] = {}
    for event in events:
        match event.body:
            case ChatBegun() as body:
                chat, seat = _begin(chat, body), ""
            case LegStarting(leg, agent):
                agents[leg] = agent
            case TurnBegun() as body:
                seat = body.seat if chat is not None else ""
                chat = replace(chat, begun=chat.begun + 1) if chat is not None and seat else chat
            case SignalSeen() as body if chat is not None and body.decides and is_limit(body):
                chat = replace(chat, limits={**chat.limits, body.agent: parse_moment(body.until)})
            case TurnEnded() as body if chat is not None and seat:
                chat, seat = _end_turn(chat, seat, body, agents.get(body.leg, seat)), ""
            case _:
                pass
    return chat


def is_agreed(text: str) -> bool:
    """Whether the last line says that its speaker has nothing to add, in whatever markup."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and lines[-1].strip(_MARKUP) == AGREED


def _begin(before: Chat | None, body: ChatBegun) -> Chat:
    """What was said stays; how it went does not."""
    if before is None:
        return Chat(body.agents, body.task, most=body.most)
    said = (*before.messages, Message("", body.task)) if body.task else before.messages
    return Chat(body.agents, before.task, said, before.heard, before.last, most=body.most)


def _end_turn(chat: Chat, seat: str, ended: TurnEnded, speaker: str) -> Chat:
    match ended.outcome:
        case "done":
            messages = (*chat.messages, Message(speaker, ended.said))
            limits = {name: until for name, until in chat.limits.items() if name != speaker}
            return replace(
                chat,
                messages=messages,
                heard={**chat.heard, speaker: len(messages)},
                last=seat,
                taken=chat.taken + 1,
                agreed=chat.agreed | {speaker} if is_agreed(ended.said) else frozenset(),
                limits=limits,
            )
        case "resting":
            return replace(chat, last=seat)
        case _:
            return replace(chat, failure=(ended.outcome, ended.why))
