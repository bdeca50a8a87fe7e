"""What was planted in a transcript on purpose: the facts a packet has to keep and the secrets it may not."""

from typing import Literal

from pydantic import Field

from agent_relay.domain.document import Document, Strict

Kind = Literal[
    "constraint",
    "decision",
    "rejected",
    "correction",
    "todo_done",
    "todo_open",
    "error",
    "prompt",
]


class PlantedFact(Strict):
    """One fact. Every text of `says` stands in a packet that keeps it, however lines are broken.

    Where `beside` is given, one of its texts stands on the same line as the first of `says`: a step of a
    plan is only kept with its status.
    """

    kind: Kind
    says: tuple[str, ...] = Field(min_length=1)
    beside: tuple[str, ...] = ()


class PlantedSecret(Strict):
    """One secret, of which no part long enough to be of use may stand in a packet.

    `text` may be given in pieces, so that nobody's scanner takes a file of made-up secrets for a leak.
    """

    kind: str
    text: str | tuple[str, ...] = Field(min_length=1)

    @property
    def whole(self) -> str:
        """The secret in one piece."""
        return self.text if isinstance(self.text, str) else "".join(self.text)


class Planting(Document):
    """A file of planted facts. `transcript` is relative to it; other tables are its author's own."""

    agent: str = ""
    transcript: str = ""
    fact: tuple[PlantedFact, ...] = Field(min_length=1)
    secret: tuple[PlantedSecret, ...] = ()
