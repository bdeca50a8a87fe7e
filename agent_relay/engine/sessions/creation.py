"""Check a request to open a session, and create one for it: its first lines, or the history it adopts."""

import asyncio
import os
from collections.abc import Iterable, Sequence

from agent_relay.agents.agent_versions import claim_first_notice
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import SessionCreated
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.inputs import HandoffAsked
from agent_relay.domain.names import is_newer
from agent_relay.domain.session import NO_TERMS, Session, Terms
from agent_relay.domain.state import State
from agent_relay.domain.values import Asker, Confidential
from agent_relay.engine.publishing.limited_work import redact_request
from agent_relay.engine.publishing.native_records import list_adopted_owners, list_owners
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.native_choices import read_own_ids
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.session.decision import Outcome
from agent_relay.session.ownership import build_history, check_conversations, check_program
from agent_relay.session.views.messages import render_left_out, render_newer, render_resting_note
from agent_relay.sources.native_sessions import FoundSessions, end_programs, find_native_sessions
from agent_relay.store.session_index import list_moved_at
from agent_relay.store.session_journals import SessionJournal, create_journal
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.git.tree_state import find_root


class OpenRequest(Confidential, frozen=True):
    """A request for an agent at work in `cwd`, with the user's environment.

    `source` is the agent whose native session is to be adopted, `native` that session's id or one end of it,
    empty for the newest; without `launch` only a packet is wanted.
    """

    agent: str
    cwd: str
    environ: dict[str, str]
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    task: str = ""
    session: str = ""
    fresh: bool = False
    source: str = ""
    native: str = ""
    focus: str = ""
    digest: bool = False
    model: str = ""
    force: bool = False
    launch: bool = True
    terms: Terms = NO_TERMS

    def build_wish(self, focus: str, asker: Asker) -> HandoffAsked:
        """Return the handoff that `asker` asks for with this request."""
        return HandoffAsked(
            self.agent, focus=focus, force=self.force, terms=self.terms, digest=self.digest, asker=asker
        )

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
    """Raise WrongUseError for what would be ignored if `session` went on as `request` says.

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


_LOOKED_AT = 500
"""Most of an agent's sessions, newest first, that are searched for a name."""


def find_adoptable(services: Services, request: OpenRequest, at_work: Iterable[Session]) -> NativeSession:
    """Return the native session the request names, else its agent's newest one there. Reads disk.

    The newest is never one of an ended session of ours, which is to be continued as that session.

    Raises WrongUseError if it has none, or not exactly one of that name; RelayError if one that might be the
    newest cannot be read.
    """
    agent, wanted = request.source, request.native
    spec = services.get_adapter(agent).adapter.transcript
    found = FoundSessions((), ())
    if spec is not None:
        home = request.environ.get("HOME", "")
        limit = _LOOKED_AT if wanted else 1
        own = set[str]() if wanted else read_own_ids(request.cwd, services.folders.sessions)
        but = own.difference(leg.native_id for session in at_work for leg in session.legs)
        found = find_native_sessions(
            spec, cwd=request.cwd, home=home, environ=request.environ, limit=limit, but=but
        )
    if found.unread and not found.sessions:
        raise found.unread[0]
    if found.unread and not wanted:
        raise RelayError(
            f"cannot tell {agent}'s newest session in {request.cwd}: {found.unread[0].sentence}",
            hint=f"Name one, --from {agent}:ID; see: agent-relay sessions --native",
        )
    if not found.sessions:
        raise WrongUseError(
            f"{agent} has no session in {request.cwd} that relay did not start",
            hint=f"Leave out --from to start one; to continue one that relay started: --from {agent}:ID",
        )
    exact = [native for native in found.sessions if wanted and native.native_id == wanted]
    named = exact or [native for native in found.sessions if _is_named(native.native_id, wanted)]
    if len(named) != 1:
        what = f"{len(named)} sessions" if named else "no session"
        raise WrongUseError(
            f"{agent} has {what} of its own called {wanted[:40]!r} in {request.cwd}",
            hint="See: agent-relay sessions --native",
        )
    return named[0]


def check_program_ended(services: Services, request: OpenRequest, native: NativeSession) -> None:
    """Raise WrongUseError if the agent's own program still runs and the user has not said to end it.

    Reads processes; ends none: that waits until a successor is known to be able to start.
    """
    found = list_owners(services, request.source, native, cwd=request.cwd, environ=request.environ)
    pids = [pid for pid, _ in found]
    check_program(request.source, request.cwd, pids, successor=request.agent, force=request.force)


async def end_adopted_program(
    services: Services, host: Host, asked: HandoffAsked, request: OpenRequest
) -> None:
    """End the user's own program that uses what the session adopted, if the user said yes.

    Raises WrongUseError if they did not, and what `asked` would raise: no program is ended if no successor
    could start.
    """
    session = host.session
    found = await asyncio.to_thread(list_adopted_owners, services, session, request.environ)
    agent, pids = session.agent, [pid for pid, _ in found]
    is_ended = check_program(
        agent, session.cwd, pids, successor=request.agent, session=session.id, force=request.force
    )
    if not is_ended:
        return
    await host.check(asked)
    fault = await asyncio.to_thread(services.holders.find_fault)
    if fault:
        raise RelayError(fault)
    await asyncio.to_thread(end_programs, found)


def was_adopted(session: Session, request: OpenRequest) -> bool:
    """Tell whether `session` is what `request` would make: another terminal was faster."""
    if not session.legs or not (session.agent == request.agent or is_on_its_way(session, request.agent)):
        return False
    first = session.legs[0]
    is_named = not request.native or _is_named(first.native_id, request.native)
    return first.agent == request.source and not first.child_pid and is_named


def _is_named(native_id: str, wanted: str) -> bool:
    return native_id.startswith(wanted) or native_id.endswith(wanted)


async def create_session(
    services: Services, request: OpenRequest, root: str, at_work: Sequence[Session]
) -> tuple[SessionJournal, Outcome]:
    """Create a session in `root`; return its journal and the history to add: of an adopted one, or none.

    Raises WrongUseError if one of the sessions `at_work` already goes on with that history, and
    ConfigurationError while the user's file has a mistake: the configuration before it is not what they want.
    """
    await asyncio.to_thread(services.check_config)
    native = None
    if request.source:
        native = await asyncio.to_thread(find_adoptable, services, request, at_work)
        check_conversations(request.source, (native.native_id,), at_work, successor=request.agent)
        if request.launch:
            await asyncio.to_thread(check_program_ended, services, request, native)
    roster = await asyncio.to_thread(services.build_roster, request.agent, root)
    known = await asyncio.to_thread(gather_secrets, root, request.environ, cwd=request.cwd)
    task = await redact_request(request.task, known=known)
    body = SessionCreated(services.create_id(), root, request.cwd, roster, task)
    journal = await asyncio.to_thread(create_journal, services.folders, body, at=services.clock.now())
    past = build_history(services.create_id(), request.source, native) if native is not None else ()
    return journal, Outcome(past)


async def find_note(services: Services, request: OpenRequest) -> str:
    """Return what the user should know of a new session; empty for nothing.

    That is which adapters were left out, and whether the agent rests, by the ledger, or is newer than known.
    """
    state = (await asyncio.to_thread(services.read_availability, request.environ))[request.agent]
    now = services.clock.now()
    rests = render_resting_note(request.agent, state, now, services.zone) if state.resting else ""
    left_out = [(one.name, one.sentence) for one in services.catalog.broken]
    newer = await asyncio.to_thread(_find_newer, services, request)
    return " ".join(note for note in (render_left_out(left_out), rests, newer) if note)


def _find_newer(services: Services, request: OpenRequest) -> str:
    """Return that the agent is newer than what this release was tested with, once for each version."""
    loaded = services.fit_installed(request.agent, request.environ)
    version, newest = loaded.version, loaded.adapter.newest_tested
    if not is_newer(version, newest) or not claim_first_notice(
        request.agent, version, services.folders.agent_versions
    ):
        return ""
    return f"→ {render_newer(request.agent, version, newest)}"


async def find_session(registry: SessionRegistry, request: OpenRequest, root: str) -> Host | None:
    """Return the requested session, else the one at work in `root`; `None` if there is none.

    Hold the lock, as for all that follows. Raises WrongUseError if the session named is unknown.
    """
    if request.session:
        await registry.follow_move(request.session, root)
        if request.session not in registry:
            await registry.reopen(request.session)
        return registry.get(request.session)
    await registry.enter_released(root)
    if request.fresh:
        return None
    for session_id in await asyncio.to_thread(list_moved_at, root, registry.services.folders.sessions):
        await registry.follow_move(session_id, root)
    here = [session for session in registry.at_work() if session.root == root]
    going = [one for one in here if one.state is not State.STOPPING and not (one.leg and one.leg.headless)]
    return registry.get(going[0].id) if going else None


async def create(registry: SessionRegistry, request: OpenRequest, root: str) -> Host:
    """Create a session, without a leg or with the one adopted from `request.source`, and return it."""
    async with registry.trees.enter(root):
        journal, past = await create_session(registry.services, request, root, registry.at_work())
        host = registry.add(journal)
    if past.bodies:
        await host.ask(past)
    return host
