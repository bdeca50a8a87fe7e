"""From a session's journal to its chat: who takes part, what was said, and how far it has come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent_relay.domain.event import (
    Body,
    Event,
    LegEnded,
    LegStarted,
    LegStarting,
    SessionEnded,
    SignalSeen,
)
from agent_relay.domain.turn_event import ChatBegun, TurnBegun, TurnEnded
from agent_relay.logic.fold import is_limit
from agent_relay.logic.moments import parse_moment

AGREED = "AGREED"
"""The line an agent ends with when it has nothing to add."""
_MARKUP = "*_`~# \t.!"


@dataclass(frozen=True, slots=True)
class Message:
    """What `speaker` said; the user where that is empty."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat as its session's journal tells it. From `most` on it is since it was last begun or gone on with.

    `heard` is how many of the messages each agent knows: those before its last answer. `last` is the seat
    of the last turn that was taken or passed over, empty before the first.
    `begun` are the lines of the turns begun, but for those a killed daemon had no time to ask anybody, `seat`
    whose the open one is. `taken` counts those that came to a good end; of those, `agreed` are the
    speakers that had nothing to add since somebody last did. `limits` are agents that met a limit, and
    until when, `None` for unknown. `failure` is the outcome and reason of a turn that ended the chat,
    `failed` its leg.
    """

    agents: tuple[str, ...]
    task: str
    messages: tuple[Message, ...] = ()
    heard: Mapping[str, int] = field(default_factory=dict)
    last: str = ""
    most: int = 0
    begun: tuple[int, ...] = ()
    seat: str = ""
    taken: int = 0
    agreed: frozenset[str] = frozenset()
    limits: Mapping[str, datetime | None] = field(default_factory=dict)
    failure: tuple[str, str] = ("", "")
    failed: str = ""


def fold_chat(events: Iterable[Event]) -> Chat | None:
    """The chat of a journal; `None` where none was begun in the session."""
    chat: Chat | None = None
    legs = _Legs()
    for event in events:
        legs.note(event.body)
        if isinstance(event.body, ChatBegun):
            chat = _begin(chat, event.body)
        elif chat is not None:
            chat = _fold(chat, event, legs)
    return chat


class _Legs:
    """The legs told of so far: their agents, and which of them ever lived."""

    def __init__(self) -> None:
        self.agents: dict[str, str] = {}
        self._started: set[str] = set()

    def note(self, body: Body) -> None:
        match body:
            case LegStarting(leg, agent):
                self.agents[leg] = agent
            case LegStarted(leg):
                self._started.add(leg)
            case _:
                pass

    def never_lived(self, ended: LegEnded) -> bool:
        """Whether the daemon was killed while it started the leg: nobody was asked anything."""
        return ended.how == "lost" and ended.leg not in self._started


def _fold(chat: Chat, event: Event, legs: _Legs) -> Chat:  # noqa: PLR0911 - one arm an event
    match event.body:
        case TurnBegun() as body:
            begun = (*chat.begun, event.number) if body.seat else chat.begun
            return replace(chat, seat=body.seat, begun=begun)
        case SignalSeen() as body if body.decides and is_limit(body):
            return replace(chat, limits={**chat.limits, body.agent: parse_moment(body.until)})
        case TurnEnded("", "stopped") if chat.seat:
            return replace(chat, seat="", begun=chat.begun[:-1])
        case TurnEnded() as body if chat.seat:
            return _end_turn(chat, body, legs.agents.get(body.leg, chat.seat))
        case LegEnded() as body if body.leg == chat.failed and legs.never_lived(body):
            return replace(chat, failed="", failure=("", ""), begun=chat.begun[:-1])
        case SessionEnded(why) if chat.seat:
            return replace(chat, seat="", failure=("stopped", why))
        case _:
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


def _end_turn(chat: Chat, ended: TurnEnded, speaker: str) -> Chat:
    seat, chat = chat.seat, replace(chat, seat="")
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
            return replace(chat, failure=(ended.outcome, ended.why), failed=ended.leg)
