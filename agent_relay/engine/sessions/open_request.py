"""What a terminal asks for when it names an agent, and the checks of such a request."""

import os
from dataclasses import dataclass, field

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.session import NO_TERMS, Session, Terms
from agent_relay.engine.legs.launch_environment import LaunchEnvironment
from agent_relay.engine.publishing.redaction import redact_request
from agent_relay.system.git.tree_state import find_root


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request for an agent at work in `cwd`, with the user's environment.

    `source` is the agent whose native session is to be adopted, `native` that session's id or one end of it,
    empty for the newest; without `launch` only a packet is wanted.
    """

    agent: str
    cwd: str
    environ: dict[str, str] = field(repr=False)
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    task: str = ""
    session: str = ""
    fresh: bool = False
    source: str = ""
    native: str = ""
    focus: str = ""
    model: str = ""
    force: bool = False
    launch: bool = True
    terms: Terms = NO_TERMS

    def pack(self) -> LaunchEnvironment:
        """Return the launch environment of the legs started for this request."""
        return LaunchEnvironment(
            self.environ, agent=self.agent, rows=self.rows, cols=self.cols, args=self.args, model=self.model
        )


def find_requested_root(cwd: str) -> str:
    """Return the folder that holds `.agent-relay` for work in `cwd`. Raise WrongUseError for no folder."""
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise WrongUseError(f"{cwd} is not a folder")
    return find_root(cwd) or os.path.realpath(cwd)


def check_adoption(request: OpenRequest) -> None:
    """Raise WrongUseError for a task that would be ignored: nothing is typed into a session that goes on."""
    if request.task and request.source == request.agent:
        raise WrongUseError(
            f"{request.agent}'s own session goes on where it was left, so the task would not be used",
            hint="Leave it out and type it there",
        )


def check_screen(session: Session) -> None:
    """Raise WrongUseError while a headless turn is under way: there is no screen to show."""
    if session.open_turn is not None or (session.living_leg is not None and session.living_leg.headless):
        raise WrongUseError(
            f"session {session.id} works without a screen",
            hint=f"Wait for its end, or end it: agent-relay stop {session.id}",
        )


def check_terms(request: OpenRequest, session: Session | None) -> None:
    """Raise WrongUseError if no agent hands over, so that what is expected of it would be ignored."""
    if request.terms.is_empty:
        return
    if session is None:
        why = f"{request.agent} would be the first agent of a new session"
    elif session.leg is not None and session.agent == request.agent:
        why = f"{request.agent} is this session's agent already"
    else:
        return
    raise WrongUseError(
        f"{why}, so what is expected of a handoff would not be used",
        hint="Name another agent, or leave it out",
    )


async def check_use(request: OpenRequest, session: Session, running: LaunchEnvironment) -> None:
    """Raise WrongUseError for what would be ignored if `session` is gone on with as `request` says.

    `running` is what its agent was started with: a repeated command asks for nothing new.
    """
    if session.agent != request.agent:
        return
    task = "the task" if request.task and await redact_request(request.task) != session.task else ""
    if session.living_leg is None:
        if task:
            raise WrongUseError(
                f"session {session.id} goes on where {request.agent} left it, so {task} would not be used",
                hint="Leave it out and type it there, or begin another session: --new",
            )
        return
    mine = running.agent == request.agent
    model = "--model" if request.model and not (mine and running.model == request.model) else ""
    args = "the words after --" if request.args and not (mine and running.args == request.args) else ""
    unused = [word for word in (task, model, args) if word]
    if unused:
        raise WrongUseError(
            f"{request.agent} is at work here already, so {' and '.join(unused)} would not be used",
            hint="Leave that out to attach to it, or begin another session: --new",
        )


def is_on_its_way(session: Session, agent: str) -> bool:
    """Tell whether a handoff to `agent` is under way."""
    handoff = session.handoff
    return handoff is not None and handoff.to_agent == agent and not handoff.is_cancelled


def asks_nothing_new(request: OpenRequest) -> bool:
    """Tell whether `request` asks for nothing more than a handoff to its agent that is under way."""
    return not (request.task or request.focus or request.args or request.model) and request.terms.is_empty


async def build_focus(request: OpenRequest, session: Session) -> str:
    """Return what a successor is to look at first: a task that is not the session's, then the focus."""
    task, focus = await redact_request(request.task), await redact_request(request.focus)
    return "\n".join(text for text in (task if task != session.task else "", focus) if text)
