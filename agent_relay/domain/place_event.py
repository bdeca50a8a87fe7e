"""The line of a session's journal that tells where it stands."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class SessionMoved:
    """The repository was renamed or moved, and the session's folder with it."""

    name: ClassVar[str] = "session.moved"
    root: str
    cwd: str
