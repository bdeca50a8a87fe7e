"""The table of the daemon's operations: the name of each, and its fields with their types and defaults.

Clients name an operation and send its fields. The daemon checks them here, and its rooms give each operation
the function that performs it. docs/wire.md says what each does and answers. A field that is a Python keyword
has an underscore behind its name here.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.protocol.agent_fields import (
    AgentCheckpointFields,
    AgentCompactFields,
    AgentFields,
    AgentHandoffFields,
    AgentNoteFields,
    AgentPlanFields,
    AgentRecallFields,
    AgentShowFields,
    AgentVerdictFields,
)
from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.handoff_report import NO_REPORT, HandoffReport


class Peer(msgspec.Struct, frozen=True):
    """The process that asks, as the kernel names it; `client` is its version of agent-relay."""

    pid: int
    uid: int
    client: str = ""


Handler = Callable[[Mapping[str, object], Peer], Awaitable[Mapping[str, object]]]
"""Answers one request by the fields it was sent, still unchecked: with the answer's, or by raising a
RelayError that the client shall see.

It runs to its end even where the client goes away; it is cancelled only when the daemon stops.
"""


class NoticeSender(Protocol):
    """Through which the application reports that something changed."""

    def tell(self, session: str) -> None:
        """Notify subscribers that this session changed. Returns at once; call it in the event loop."""
        ...


class App(Protocol):
    """The application a daemon serves: it is started, gives its handlers by name, and is stopped."""

    async def start(self) -> None:
        """Take over what an earlier daemon left; the daemon answers requests only after this."""
        ...

    async def stop(self) -> None:
        """Release everything, holders left running. Called once, with a limit on its time."""
        ...

    def handlers(self) -> Mapping[str, Handler]:
        """Return the operations offered, by name."""
        ...


Side = Annotated[int, msgspec.Meta(ge=1, le=4096)]
"""Rows or columns of a terminal."""
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Turns = Annotated[int, msgspec.Meta(ge=0, le=1000)]
"""Most legs or turns there may be; 0 for no limit."""
Seconds = Annotated[int, msgspec.Meta(ge=0, le=7 * 24 * 3600)]
Texts = tuple[str, ...]
LISTEN_S = 20.0
"""Seconds after which a request that follows something gets an answer with nothing in it."""


F = TypeVar("F", bound=Fields)


class Operation(Generic[F]):
    """An operation: its name and the fields it takes."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: type[F]) -> None:
        self.name = name
        self.fields = fields

    def parse(self, sent: Mapping[str, object]) -> F:
        """Return the fields that were sent; raise WrongUseError for missing and wrong ones."""
        try:
            return msgspec.convert(sent, self.fields)
        except msgspec.ValidationError as error:
            raise WrongUseError(f"{self.name}: {error}") from None
        except UnicodeEncodeError:
            raise WrongUseError(f"{self.name}: a field's name is not text") from None

    def performed_by(
        self, perform: Callable[[F, Peer], Awaitable[Mapping[str, object]]]
    ) -> tuple[str, Handler]:
        """Return the name and a handler that gives `perform` the fields, checked."""

        async def handle(sent: Mapping[str, object], peer: Peer) -> Mapping[str, object]:
            return await perform(self.parse(sent), peer)

        return self.name, handle


class SessionFields(Fields):
    """An operation on one session; `root` is where its requester found it, which may be after a move."""

    session: str
    root: str = ""


class HandoffTermsFields(Fields):
    """An operation that may begin a handoff, and what is expected of it.

    `check` are commands of the user's that must succeed: relay runs them when the handoff is judged.
    `propose_check` are those an agent named: relay runs them only once a person agrees.
    """

    focus: str = ""
    digest: bool = False
    yes: bool = False
    expect: Texts = ()
    accept: Texts = ()
    check: Texts = ()
    propose_check: Texts = ()
    constraint: Texts = ()
    needs: Texts = ()
    question: Texts = ()
    priority: str = ""
    rollback: str = ""


class HandoffFields(Fields):
    """An operation on one handoff."""

    session: str
    handoff: str
    note: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)


class OpenFields(HandoffTermsFields, kw_only=True):
    """A session to find, hand over or begin."""

    agent: str
    cwd: str
    env: dict[str, str] = msgspec.field(default_factory=dict)
    rows: Side = 24
    cols: Side = 80
    args: Texts = ()
    task: str = ""
    session: str = ""
    new: bool = False
    from_: str = ""
    model: str = ""
    no_launch: bool = False


class UseFields(HandoffTermsFields, kw_only=True):
    """A handoff to `agent`; empty for the next of the order."""

    session: str
    root: str = ""
    agent: str
    turn: bool = False


class NativesFields(Fields):
    """The sessions that agents keep themselves in `cwd`, for a start of `agent` with `args`.

    Only those that changed within the last `within_s` seconds; 0 for all.
    """

    agent: str
    cwd: str
    env: dict[str, str] = msgspec.field(default_factory=dict)
    args: Texts = ()
    within_s: Seconds = 0


class RestAgreementFields(SessionFields):
    """A person's answer to whether work goes on by itself when the rest is over."""

    agreed: bool = True


class NarrateFields(SessionFields):
    """A handoff document to be written; `env` for a session nobody has at work."""

    focus: str = ""
    env: dict[str, str] | None = None


class EnvironmentFields(SessionFields):
    """Environment and terminal size that the session's next agent may start with."""

    env: dict[str, str] = msgspec.field(default_factory=dict)
    rows: Side = 24
    cols: Side = 80


class RunFields(Fields):
    """A headless turn."""

    agent: str
    task: str
    cwd: str
    env: dict[str, str] = msgspec.field(default_factory=dict)
    args: Texts = ()
    session: str = ""
    model: str = ""
    most: Turns = 0
    waits: bool = False
    message: str = ""


class StreamCursor(msgspec.Struct, frozen=True):
    """Position of a follower: the journal's line, and in a leg's stream the record and its events."""

    number: Count
    leg: str = ""
    offset: Count = 0
    events: Count = 0


class RunFollowFields(SessionFields, kw_only=True):
    """A turn to follow, and the part of it that is known."""

    told: StreamCursor


class ChatFields(Fields):
    """A chat to begin or go on with."""

    cwd: str
    env: dict[str, str] = msgspec.field(default_factory=dict)
    agents: Texts = ()
    task: str = ""
    session: str = ""
    most: Turns = 0
    message: str = ""


class ChatNextFields(SessionFields, kw_only=True):
    """The next turn of a chat; `after` is the journal's line of the last one."""

    cwd: str
    after: int
    env: dict[str, str] = msgspec.field(default_factory=dict)
    task: str = ""
    stop: bool = False


class WatchFields(Fields):
    """The sessions to watch, and the newest change that is known."""

    root: str = ""
    session: str = ""
    seen: int = 0
    wait: bool = False


class HandoffPlanFields(SessionFields):
    """A handoff to plan."""

    env: dict[str, str] = msgspec.field(default_factory=dict)
    needs: Texts = ()


class HandoffRetryFields(HandoffFields):
    """A handoff to start again."""

    yes: bool = False


class HandoffVerdictFields(HandoffFields, kw_only=True):
    """A handoff to judge, with the evidence; `by` is the agent that judges, empty for a person.

    Its commands are run first, each for `check_limit_s` at most (0: 300 s), unless `skip_checks`; those that
    an agent proposed only with `run_proposed`. With an unmet criterion it is completed only `anyway`.
    """

    verdict: str
    by: str = ""
    report: HandoffReport = NO_REPORT
    skip_checks: bool = False
    run_proposed: bool = False
    anyway: bool = False
    check_limit_s: Seconds = 0


class HandoffChecksFields(Fields):
    """A handoff whose criteria are being checked."""

    session: str
    handoff: str


class RaceBeginFields(Fields):
    """A race to begin."""

    agents: Texts
    task: str
    cwd: str
    env: dict[str, str] = msgspec.field(default_factory=dict)
    test: str = ""
    max_time_s: Seconds = 0
    test_limit_s: Seconds = 0
    apply: bool = False


class RaceFields(Fields):
    """An operation on one race."""

    race: str


class RaceResumeFields(RaceFields):
    """A race to go on with."""

    env: dict[str, str] = msgspec.field(default_factory=dict)


class RaceApplyFields(RaceFields):
    """A runner's work to apply; 0 for the winner's."""

    runner: int = 0


class TreeFields(Fields):
    """A working tree to take over."""

    cwd: str


PING = Operation("ping", Fields)
SUBSCRIBE = Operation("subscribe", Fields)
OPEN = Operation("open", OpenFields)
WHERE = Operation("where", SessionFields)
USE = Operation("use", UseFields)
REST_AGREE = Operation("rest.agree", RestAgreementFields)
REST_GO = Operation("rest.go", SessionFields)
NARRATE = Operation("narrate", NarrateFields)
NARRATE_CANCEL = Operation("narrate.cancel", SessionFields)
SESSION_STOP = Operation("session.stop", SessionFields)
SESSION_HOLD_BACK = Operation("session.hold_back", SessionFields)
SESSION_HISTORY = Operation("session.history", SessionFields)
SESSION_ENVIRONMENT = Operation("session.environment", EnvironmentFields)
SESSION_LIST = Operation("session.list", Fields)
SESSION_NATIVES = Operation("session.natives", NativesFields)
RUN_BEGIN = Operation("run.begin", RunFields)
RUN_FOLLOW = Operation("run.follow", RunFollowFields)
RUN_FORGET = Operation("run.forget", SessionFields)
CHAT_BEGIN = Operation("chat.begin", ChatFields)
CHAT_NEXT = Operation("chat.next", ChatNextFields)
WATCH_FOLLOW = Operation("watch.follow", WatchFields)
HANDOFF_PLAN = Operation("handoff.plan", HandoffPlanFields)
HANDOFF_CANCEL = Operation("handoff.cancel", HandoffFields)
HANDOFF_RETRY = Operation("handoff.retry", HandoffRetryFields)
HANDOFF_CLOSE = Operation("handoff.close", HandoffVerdictFields)
HANDOFF_CHECKS_CANCEL = Operation("handoff.checks.cancel", HandoffChecksFields)
RACE_BEGIN = Operation("race.begin", RaceBeginFields)
RACE_SHOW = Operation("race.show", RaceFields)
RACE_RESUME = Operation("race.resume", RaceResumeFields)
RACE_STOP = Operation("race.stop", RaceFields)
RACE_APPLY = Operation("race.apply", RaceApplyFields)
RACE_CLEAN = Operation("race.clean", RaceFields)
HOOKS_FOLLOW = Operation("hooks.follow", Fields)
TREE_TAKE = Operation("tree.take", TreeFields)
AGENT_STATUS = Operation("agent.status", AgentFields)
AGENT_RECALL = Operation("agent.recall", AgentRecallFields)
AGENT_HANDOFF = Operation("agent.handoff", AgentHandoffFields)
AGENT_COMPACT = Operation("agent.compact", AgentCompactFields)
AGENT_LIST = Operation("agent.list", AgentFields)
AGENT_SHOW = Operation("agent.show", AgentShowFields)
AGENT_LIMITS = Operation("agent.limits", AgentFields)
AGENT_PLAN = Operation("agent.plan", AgentPlanFields)
AGENT_ACCEPT = Operation("agent.accept", AgentNoteFields)
AGENT_CLOSE = Operation("agent.close", AgentVerdictFields)
AGENT_CHECKPOINT = Operation("agent.checkpoint", AgentCheckpointFields)
MCP_SERVE = Operation("mcp.serve", Fields)
DAEMON_STATUS = Operation("daemon.status", Fields)
DAEMON_STOP = Operation("daemon.stop", Fields)
DAEMON_LOGS = Operation("daemon.logs", Fields)

OPERATIONS: Mapping[str, Operation[Fields]] = {
    one.name: one for one in list(globals().values()) if isinstance(one, Operation)
}
