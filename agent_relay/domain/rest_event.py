"""The lines of a session's journal that say what may go on by itself when a limit is over."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ResumeAgreed:
    """While everybody rested, a person said that work may go on by itself then, once; or took that back."""

    name: ClassVar[str] = "resume.agreed"
    agreed: bool = True


@dataclass(frozen=True, slots=True)
class LegContinues:
    """The leg's agent said that it goes on by itself `at` (ISO 8601); with an empty one it says so no more.

    `allowed` is whether that is left to it; otherwise its own timer is cancelled.
    """

    name: ClassVar[str] = "leg.continues"
    leg: str
    at: str = ""
    allowed: bool = True
