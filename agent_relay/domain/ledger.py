"""Which agent rests until when, across sessions and repositories."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Rest:
    """One limit an agent is under.

    `model` is empty for limits of the whole account. `until` is aware, or `None` where nobody knows: then
    the agent rests until the user says otherwise. `evidence` is what was seen, redacted.
    """

    agent: str
    model: str
    scope: str
    until: datetime | None
    evidence: str
    seen_at: datetime
