"""Gathers what a question about metrics is about, from files alone: our journals and the agents' records.

It imports what finding the records needs; the rest is loaded while others read them.
"""

import os
from collections.abc import Callable, Collection, Mapping
from datetime import datetime

import msgspec

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.system.folders import Folders
from agent_relay.system.glances import find_near_root, read_sessions_at
from agent_relay.system.metrics_looked import list_looked
from agent_relay.system.session_index import list_index
from agent_relay.system.usage import UsageRead, read_usage
from agent_relay.system.usage_specs import load_specs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.logic.metrics.legs import SessionWork
    from agent_relay.logic.metrics.pool import Native


class Wanted(msgspec.Struct, frozen=True):
    """Which work is asked about: one `session`, all on this machine, or else this repository's.

    With `is_chain` also the sessions that one goes back to or went on in; without a name, the newest one's.
    """

    session: str = ""
    is_chain: bool = False
    is_all: bool = False


class Gathered(msgspec.Struct):
    """The work asked about; `is_ours_only` leaves out what native sessions did outside our legs.

    It `is_lasting` where it stays the same for as long as none of the files and folders at `looked` changes,
    and no path of `places` leads elsewhere: nothing is under way, and everything could be read.
    """

    works: "list[SessionWork]"
    natives: "list[Native]"
    read: UsageRead
    is_ours_only: bool = False
    problems: list[str] = msgspec.field(default_factory=list)
    looked: list[str] = msgspec.field(default_factory=list)
    places: dict[str, str] = msgspec.field(default_factory=dict)
    is_lasting: bool = False


def gather_metrics(
    folders: Folders,
    wanted: Wanted,
    *,
    cwd: str,
    environ: Mapping[str, str],
    now: datetime,
    hands: int = 1,
    meanwhile: Callable[[], None] = lambda: None,
) -> Gathered:
    """Everything `wanted` is about; `hands` and `meanwhile` are for `read_usage`, which ours is done in, too.

    Raises WrongUseError for a session that is not there, or not only one.
    """
    root = find_near_root(cwd)
    places = [(str(view["session"]), root) for view in read_sessions_at(root, folders.sessions)]
    if wanted.is_chain and not wanted.session:
        if not places:
            raise WrongUseError("there is no session here", hint="See: agent-relay metrics --all")
        wanted = msgspec.structs.replace(wanted, session=places[0][0])
    index = list_index(folders.sessions)
    known = set(places)
    everywhere = places + [one for one in index if one not in known]
    works, problems, looked = list["SessionWork"](), list[str](), list[str]()

    def prepare() -> None:
        meanwhile()
        works.extend(_read_works(everywhere if wanted.is_all or wanted.session else places, now, problems))
        looked.extend(list_looked(folders, root))

    specs = load_specs(folders, root=root, problems=problems)
    read = read_usage(
        specs, folders.usage_index, home=environ.get("HOME", ""), environ=environ,
        hands=hands, meanwhile=prepare,
    )  # fmt: skip
    gathered = Gathered(works, read.natives, read, problems=problems + read.problems)
    gathered.looked = [*read.looked, *looked, *(_journal(*one) for one in everywhere)]
    gathered.is_lasting = not gathered.problems and not any(work.is_under_way for work in works)
    if wanted.session:
        _choose(gathered, wanted)
    elif not wanted.is_all:
        _keep_inside(gathered, root)
    return gathered


def check_agent(gathered: Gathered, agent: str, folders: Folders, *, cwd: str) -> None:
    """Check that the agent did something here or is known.

    Raises WrongUseError, or ConfigurationError where its adapter cannot be used.
    """
    told = {leg.agent for work in gathered.works for leg in work.legs}
    if agent in told or any(native.agent == agent for native in gathered.natives):
        return
    from agent_relay.system.adapter_catalog import read_catalog

    read_catalog(folders, root=find_near_root(cwd)).get(agent)


def _keep_inside(gathered: Gathered, root: str) -> None:
    """Narrow down to what was used at `root` or below it, or by our legs there."""
    cwds = {native.cwd for native in gathered.natives}
    gathered.places = {cwd: os.path.realpath(cwd) for cwd in cwds if cwd}
    inside = gathered.places[root] = os.path.realpath(root)
    named = {native for work in gathered.works for leg in work.legs for native in leg.natives}
    gathered.natives = [
        native
        for native in gathered.natives
        if native.session in named or _is_below(gathered.places.get(native.cwd, ""), inside)
    ]


def _read_works(
    places: Collection[tuple[str, str]], now: datetime, problems: list[str]
) -> "list[SessionWork]":
    works = list["SessionWork"]()
    if not places:
        return works
    from agent_relay.logic.fold import ImpossibleEventError
    from agent_relay.logic.metrics.work import fold_work
    from agent_relay.system.journal import read_events

    for session, root in places:
        path = _journal(session, root)
        try:
            work = fold_work(read_events(path), now)
        except RelayError as error:
            problems.append(error.sentence)
        except ImpossibleEventError:
            problems.append(f"{path} contradicts itself")
        else:
            works += [work] if work is not None else []
    return works


def _journal(session: str, root: str) -> str:
    return os.path.join(root, ".agent-relay", "sessions", session, "journal.jsonl")


def _choose(gathered: Gathered, wanted: Wanted) -> None:
    """Narrow down to the one session named: ours by its id, an agent's own by `agent:id` or its id."""
    text = wanted.session
    ours = [work for work in gathered.works if _is_named(work.session, text.upper())]
    own = [one for one in gathered.natives if _is_named(one.session, text) or _is_word(one, text)]
    if len(ours) + len(own) != 1:
        what = "no session is" if not ours and not own else f"{len(ours) + len(own)} sessions are"
        raise WrongUseError(f"{what} named {text[:60]!r}", hint="See: agent-relay metrics --all")
    if wanted.is_chain:
        from agent_relay.logic.metrics.chain import find_chain

        gathered.works, gathered.natives = find_chain(gathered.works, gathered.natives, ours, own)
    elif ours:
        named = {native for leg in ours[0].legs for native in leg.natives}
        gathered.works, gathered.is_ours_only = ours, True
        gathered.natives = [one for one in gathered.natives if one.session in named]
    else:
        gathered.natives = own


def _is_named(session: str, text: str) -> bool:
    return session.startswith(text) or session.endswith(text)


def _is_word(native: "Native", text: str) -> bool:
    agent, _, session = text.partition(":")
    return native.agent == agent and bool(session) and _is_named(native.session, session)


def _is_below(real: str, root: str) -> bool:
    return real == root or real.startswith(root.rstrip("/") + "/")
