"""A chat driven by hand: its journal, and who has the next turn."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.events.session import Body, Event, LegStarting, SessionCreated, SignalSeen
from agent_relay.domain.events.work import ChatBegun, TurnBegun, TurnEnded
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.handoffs import HEADLESS
from agent_relay.session.turns.chat import Chat, ChatEnd, Seat, find_next_seat, fold_chat

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
RESET = NOW + timedelta(hours=3)
ABLE = Availability(installed=True, capabilities=frozenset({HEADLESS}))
ROSTER = ("ann", "bob", "cas", "dan")


class ChatStory:
    """ann and bob talk; `turn` is one of them to its end."""

    def __init__(self, *agents: str, most: int = 0) -> None:
        self.events: list[Event] = []
        self.availability = dict.fromkeys(ROSTER, ABLE)
        self.note(SessionCreated("S", "/r", "/r", ROSTER, "paint it"))
        self.begin(*(agents or ("ann", "bob")), task="paint it", most=most)

    def note(self, *bodies: Body) -> "ChatStory":
        for body in bodies:
            self.events.append(Event(len(self.events) + 1, NOW, 1, body))
        return self

    def begin(self, *agents: str, task: str = "", most: int = 0) -> "ChatStory":
        return self.note(ChatBegun(agents, task, most))

    def turn(self, seat: str, said: str = "", *, speaker: str = "", outcome: str = "done") -> "ChatStory":
        leg = f"L{len(self.events)}"
        return self.note(
            TurnBegun(seat, "…", seat=seat, others=("x",)),
            LegStarting(leg, speaker or seat, 1, headless=True),
            TurnEnded(leg, outcome, "why", said),
        )

    def limit(self, agent: str, until: str = "") -> "ChatStory":
        return self.note(SignalSeen("L", agent, "limit", "account", "stream", "limit", True, until))

    def rests(self, *agents: str) -> "ChatStory":
        for agent in agents:
            self.availability[agent] = replace(ABLE, resting=True, rests_until=RESET, scope="account")
        return self

    @property
    def chat(self) -> Chat:
        found = fold_chat(self.events)
        assert found is not None
        return found

    @property
    def next(self) -> Seat | ChatEnd:
        return find_next_seat(self.chat, self.availability, ROSTER, now=NOW, zone=UTC)
