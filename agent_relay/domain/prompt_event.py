"""The line of a session's journal that tells what a leg was asked, before the agent's own record may."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class PromptSeen:
    """The leg's agent took a prompt of the user's, by its own signals, at `asked_at` (ISO 8601).

    Of a long `text` the end is missing: `left_out` characters. `native_id` is the conversation it was asked
    in, empty where nobody knows it.
    """

    name: ClassVar[str] = "prompt.seen"
    leg: str
    text: str
    asked_at: str
    native_id: str = ""
    left_out: int = 0
