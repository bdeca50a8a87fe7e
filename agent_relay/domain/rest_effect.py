"""What the state machine asks the host to do about an agent's own timer, and what can happen at a rest."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class CancelContinue:
    """Type the keys by which the leg's agent gives up its timer for `at`, while its screen shows that.

    Nothing answers: what its screen shows then does.
    """

    leg: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Continues:
    """The leg's screen says that its agent goes on by itself `at`; `None` where it says so no more."""

    leg: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ResumeWished:
    """A person wants a session in which everybody rests to go on by itself at the first reset, or not to."""

    agreed: bool = True


@dataclass(frozen=True, slots=True)
class GoOnAsked:
    """A person wants a session that rested to go on now, with whoever can be had again."""
