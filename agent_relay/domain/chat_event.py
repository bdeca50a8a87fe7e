"""What `chat --json` prints, an event a line: those of each turn, and what is said of the chat as a whole."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agent_relay.domain.run_event import Line, RunEvent


class ChatStarted(Line):
    """The first line: the session, whose id `--continue` takes, and who takes part, in their order."""

    type: Literal["chat"] = "chat"
    session: str
    agents: tuple[str, ...]
    folder: str = Field(description="where the session's journal and packets are")
    at: str


class TurnNext(Line):
    """A turn begins: the seat is `agent`'s, and `speaker` has it; another one where `agent` rests."""

    type: Literal["next"] = "next"
    agent: str
    speaker: str
    number: int = Field(description="of the turns begun since the chat was begun or gone on with, from 1")


class ChatOver(Line):
    """The last line: all agreed, the turns are used up, nobody is left, or a turn came to no good end.

    With `resting` fewer than two agents can speak; `resets_at` is the earliest reset, empty where none is
    known, and `skipped` says why the others cannot. `turns` are those that came to a good end.
    """

    type: Literal["chat-end"] = "chat-end"
    session: str
    outcome: Literal["agreed", "turns", "resting", "failed", "stopped"]
    turns: int
    why: str = ""
    resets_at: str = ""
    skipped: tuple[str, ...] = ()
    message: str


ChatEvent = Annotated[ChatStarted | TurnNext | ChatOver | RunEvent, Field(discriminator="type")]


def build_chat_schema() -> dict[str, object]:
    """The JSON Schema of one line."""
    schema: dict[str, object] = TypeAdapter(ChatEvent).json_schema(mode="serialization")
    head: dict[str, object] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of agent-relay chat --json",
    }
    return head | schema
