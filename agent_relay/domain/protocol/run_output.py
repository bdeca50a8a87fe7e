"""The lines that `run --json` and `chat --json` print, an event each, and their published JSON Schemas."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agent_relay.domain.documents.document import Printed, build_schema


class Began(Printed):
    """The turn began, in this session; `--continue` takes its id."""

    type: Literal["turn"] = "turn"
    session: str
    agent: str
    folder: str = Field(description="where the session's journal and packets are")
    at: str
    message: str | None = Field(default=None, description="the id whoever asked gave the turn")


class LegBegan(Printed):
    """An agent works on the turn now; `model` is the one relay chose, empty for the user's own."""

    type: Literal["leg"] = "leg"
    leg: str
    agent: str
    model: str = ""
    resumes: bool = Field(default=False, description="whether it goes on in its own earlier conversation")
    asked: str = Field(default="", description="the agent asked for the turn, if this one works in its place")
    why: str = Field(default="", description="why the agent that was asked cannot take it")
    at: str


class Named(Printed):
    """The agent's own session became known."""

    type: Literal["native"] = "native"
    leg: str
    native_id: str


class Text(Printed):
    """The agent says this to the user; with `more` the next text belongs to the same message."""

    type: Literal["text"] = "text"
    leg: str
    agent: str
    text: str
    more: bool = False


class Thought(Printed):
    """The agent's thoughts, as far as it tells them; printed once, and kept nowhere by relay."""

    type: Literal["thought"] = "thought"
    leg: str
    agent: str
    text: str
    more: bool = False


class ToolCalled(Printed):
    """The agent uses a tool; what goes in is cut to 4,000 characters."""

    type: Literal["tool"] = "tool"
    leg: str
    agent: str
    name: str = ""
    call: str = ""
    input: str = ""
    about: Literal["", "plan"] = Field(default="", description="`plan`: a `plan` tells what comes of it")


class ToolAnswered(Printed):
    """Result of a tool call, cut to 4,000 characters."""

    type: Literal["result"] = "result"
    leg: str
    agent: str
    call: str = ""
    is_error: bool = False
    output: str = ""


class FileEdited(Printed):
    """A file is changed; `diff` is unified, without the files' names, and cut to 20,000 characters."""

    type: Literal["edit"] = "edit"
    leg: str
    agent: str
    call: str = ""
    path: str = ""
    diff: str = ""


class RunPlanStep(Printed):
    """One step; what is empty is as it was told before."""

    id: str = ""
    text: str = ""
    status: Literal["", "pending", "doing", "done", "dropped"] = ""


class PlanTold(Printed):
    """The agent's plan: the `whole` plan, or what is new of it."""

    type: Literal["plan"] = "plan"
    leg: str
    agent: str
    whole: bool
    steps: tuple[RunPlanStep, ...]


class UsageTold(Printed):
    """Tokens and cost of requests; what the agent does not tell is left out. `cost` is in US dollars."""

    type: Literal["usage"] = "usage"
    leg: str
    agent: str
    tokens: dict[str, Annotated[int, Field(ge=0)]]
    cost: float | None = None


class LeftOut(Printed):
    """A line of the agent's output was passed over: it is longer than `longest` bytes."""

    type: Literal["left-out"] = "left-out"
    leg: str
    agent: str
    longest: int


class SignalTold(Printed):
    """A limit, a warning of one, or a sign-in that was refused; `resets_at` is ISO 8601."""

    type: Literal["signal"] = "signal"
    leg: str
    agent: str
    kind: str
    scope: Literal["transient", "model", "account", "billing", "auth", "warning"]
    resets_at: str = ""
    text: str
    at: str


class BudgetTold(Printed):
    """A budget of the user's passed a mark; `message` says it in words."""

    type: Literal["budget"] = "budget"
    leg: str
    budget: str
    mark: Literal["uncounted", "unpriced", "warn", "spent"]
    message: str
    at: str


class HandedOver(Printed):
    """The turn passes to another agent, by this packet."""

    type: Literal["handoff"] = "handoff"
    handoff: str
    from_agent: str
    to_agent: str
    reason: str
    packet: str = Field(description="the path of the text the successor reads")
    message: str
    at: str


class HandoffBroke(Printed):
    """A handoff failed; the next agent is asked, or the turn ends."""

    type: Literal["handoff-failed"] = "handoff-failed"
    handoff: str
    why: str
    at: str


class LegOver(Printed):
    """The agent's process is over; `status` is as a shell has it, -1 unknown."""

    type: Literal["leg-end"] = "leg-end"
    leg: str
    agent: str
    how: str
    status: int
    at: str


class Waiting(Printed):
    """With `--wait`: everybody rests until `resets_at`, and the turn is asked again at `until`."""

    type: Literal["waiting"] = "waiting"
    session: str
    resets_at: str
    assumed: bool = Field(default=False, description="whether no agent named that reset")
    until: str
    message: str


class Ended(Printed):
    """The last line: how the turn ended.

    With `resting` nobody is available; `resets_at` is the earliest reset, empty where none is known, and
    `skipped` says why everybody else was passed over. `hint` is what the user can do about a failure.
    `refused` are the tools the agent asked for and was not allowed to use.
    """

    type: Literal["end"] = "end"
    session: str
    agent: str
    outcome: Literal["done", "failed", "resting", "stopped"]
    why: str = ""
    resets_at: str = ""
    assumed: bool = Field(default=False, description="whether no agent named that reset")
    skipped: tuple[str, ...] = ()
    message: str = ""
    hint: str | None = None
    refused: tuple[str, ...] = ()
    never_began: bool | None = Field(default=None, description="no agent was asked; it may be asked again")


RunEvent = Annotated[
    Began
    | LegBegan
    | Named
    | Text
    | Thought
    | ToolCalled
    | ToolAnswered
    | FileEdited
    | PlanTold
    | UsageTold
    | LeftOut
    | SignalTold
    | BudgetTold
    | HandedOver
    | HandoffBroke
    | LegOver
    | Waiting
    | Ended,
    Field(discriminator="type"),
]


def build_run_schema() -> dict[str, object]:
    """Build the JSON Schema of one line of `run --json`."""
    return build_schema(TypeAdapter(RunEvent), "One line of agent-relay run --json")


class ChatStarted(Printed):
    """The first line: the session, whose id `--continue` takes, and who takes part, in their order."""

    type: Literal["chat"] = "chat"
    session: str
    agents: tuple[str, ...]
    folder: str = Field(description="where the session's journal and packets are")
    at: str


class TurnNext(Printed):
    """A turn begins: the seat is `agent`'s, and `speaker` has it; another one where `agent` rests."""

    type: Literal["next"] = "next"
    agent: str
    speaker: str
    number: int = Field(description="of the turns begun since the chat was begun or gone on with, from 1")


class ChatOver(Printed):
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
    assumed: bool = Field(default=False, description="whether no agent named that reset")
    skipped: tuple[str, ...] = ()
    message: str


ChatEvent = Annotated[ChatStarted | TurnNext | ChatOver | RunEvent, Field(discriminator="type")]


def build_chat_schema() -> dict[str, object]:
    """Build the JSON Schema of one line of `chat --json`."""
    return build_schema(TypeAdapter(ChatEvent), "One line of agent-relay chat --json")
