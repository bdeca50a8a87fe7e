"""The lines of a session's journal that tell of its headless turns."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TurnBegun:
    """A headless turn was asked of `agent`: one prompt, to be worked on to its end by whoever can.

    `most` is how many legs it may take in all, 0 for as many as there are; with `ends` the session ends
    with it.
    """

    name: ClassVar[str] = "turn.begun"
    agent: str
    prompt: str
    most: int = 0
    ends: bool = False


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The headless turn is over: `outcome` is done, failed, resting or stopped; `why` for the user."""

    name: ClassVar[str] = "turn.ended"
    leg: str
    outcome: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class SessionWaits:
    """Between two headless turns: no leg runs, and the next prompt may come."""

    name: ClassVar[str] = "session.waits"
    why: str = ""
