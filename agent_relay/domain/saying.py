"""What the records of a headless agent's standard output mean, as data."""

from typing import Literal

from pydantic import Field

from agent_relay.domain.document import Strict
from agent_relay.domain.rules import Where

Meaning = Literal["text", "thought", "tool", "result", "edit", "plan", "usage", "refused", "done", "failed"]
Token = Literal["input", "cached", "cache_write", "output", "reasoning"]


class Steps(Strict):
    """Where a plan's steps stand: `each` is the list of a whole plan; without it the part is one step of it.

    A step is known again by its `id`; what is not told of it stays as it was.
    """

    each: str = ""
    text: str = ""
    id: str = ""
    status: str = ""


class Totals(Strict):
    """Which records of the transcript tell what a conversation used so far, and where its `tokens` stand."""

    where: Where
    tokens: dict[Token, str]


class Saying(Strict):
    """One kind of record, and what it tells. Paths step through objects and lists as `Where`'s do.

    `text` is the agent's words to the user, `thought` what it thinks to itself, `tool` a call it makes,
    `result` what came of one, `edit` how one changed a file, `plan` what it means to do, `usage` what its
    requests took; `refused` names a tool it was not allowed to use, or the `id` of the call; `done` says that
    the turn is over and well, `failed` that it is over and why. A turn called done with nothing of all that
    has failed: the `text` of `done` is why. With `each`, every entry of that list counts for itself, if `of`
    means it.

    `text` is where the words stand (a tool's are its input, an edit's a unified diff), `name` and `id` are
    the tool's, `failed` is which results are failures. A tool that is `about` the plan is told as one. Words
    that are `pieces` of one message have no line's end between them. `path` is an edit's file; where no diff
    is told, `hunks` is a list of `oldStart oldLines newStart newLines lines`, or `before` and `after` are
    what was replaced. `tokens` and `cost` (US dollars) are paths. With `totals`, `tokens` are of the whole
    conversation, earlier turns included, and what the transcript told of those is taken off.
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
    about: Literal["", "plan"] = ""
    path: str = ""
    hunks: str = ""
    before: str = ""
    after: str = ""
    steps: Steps = Steps()
    tokens: dict[Token, str] = Field(default_factory=dict)
    cost: str = ""
    totals: Totals | None = None
