"""The line of a session's journal that tells of its task."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TaskDelivered:
    """The session's task reached its first leg."""

    name: ClassVar[str] = "task.delivered"
    leg: str
