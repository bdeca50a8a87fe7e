"""What the records of a headless agent's standard output mean, as data."""

from typing import Literal

from pydantic import Field

from agent_relay.domain.document import Strict
from agent_relay.domain.rules import Where

Meaning = Literal["text", "tool", "result", "usage", "done", "failed"]
Token = Literal["input", "cached", "cache_write", "output", "reasoning"]


class Saying(Strict):
    """One kind of record, and what it tells. Paths step through objects and lists as `Where`'s do.

    `text` is the agent's words to the user, `tool` a call it makes, `result` what came of one, `usage` what
    its requests took; `done` says that the turn is over and well, `failed` that it is over and why. With
    `each`, every entry of that list counts for itself, if `of` means it.

    `text` is where the words stand (a tool's are its input), `name` and `id` are the tool's, `failed` is
    which results are failures. Words that are `pieces` of one message have no line's end between them.
    `tokens` and `cost` (US dollars) are paths.
    """

    means: Meaning
    where: Where = Where()
    each: str = ""
    of: Where = Where()
    text: str = ""
    name: str = ""
    id: str = ""
    failed: Where | None = None
    pieces: bool = False
    tokens: dict[Token, str] = Field(default_factory=dict)
    cost: str = ""
