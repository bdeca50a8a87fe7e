"""What the state machine asks the host to do about an agent's context, and what can happen to it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Draft:
    """Have the leg's agent write a handoff document in a fork of its session. Nothing answers."""

    leg: str


@dataclass(frozen=True, slots=True)
class AwaitQuiet:
    """Come back with Quiet once the leg waits for a prompt, nobody types one, and no draft is being written.

    Nothing answers where that does not come to pass.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Type the agent's own command that makes its conversation shorter.

    Comes back with Spared where somebody had begun to type; else nothing answers.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class Filled:
    """The leg's context stands between other marks than before: `used` of `room` tokens (0 unknown).

    `at` is when its agent said so (aware).
    """

    leg: str
    used: int
    room: int
    at: datetime
    model: str = ""


@dataclass(frozen=True, slots=True)
class Spared:
    """The leg's agent was not told to compact after all: somebody had begun to type."""

    leg: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """The leg waits for a prompt, and nobody is typing one."""

    leg: str
