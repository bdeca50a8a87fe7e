"""The lines of a session's journal about its headless turns, and the chats made of them."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TurnBegun:
    """A headless turn was asked of `agent`: one prompt, to be worked on to its end by any agent that can.

    `most` is how many legs it may take in all, 0 for no limit; with `ends` the session ends
    with it. In a chat `seat` is the agent whose turn it is, `others` are those that may not take it over.
    `message` is the id its asker gave it, empty for none: a client that got no answer asks again by it.
    """

    name: ClassVar[str] = "turn.begun"
    agent: str
    prompt: str
    most: int = 0
    ends: bool = False
    seat: str = ""
    others: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The headless turn is over: `outcome` is done, failed, resting or stopped; `why` for the user.

    `said` are the agent's words in a turn of a chat: the other agents are given them. `refused` are the tools
    its agent asked for and was not allowed to use. One that was stopped with no `leg` never began: no agent
    was asked.
    """

    name: ClassVar[str] = "turn.ended"
    leg: str
    outcome: str
    why: str = ""
    said: str = ""
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatBegun:
    """From here on `agents` take turns; `task` is the user's message to them, empty if they only go on.

    `most` is how many turns they may take. `message` is the id its asker gave it, as a turn's.
    """

    name: ClassVar[str] = "chat.begun"
    agents: tuple[str, ...]
    task: str = ""
    most: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class SessionWaits:
    """Between two headless turns: no leg runs, and the next prompt may come."""

    name: ClassVar[str] = "session.waits"
    why: str = ""
