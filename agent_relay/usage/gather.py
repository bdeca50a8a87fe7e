"""Gather what a question about metrics is about, from files alone: journals and the agents' records.

It also finds where each agent's records are, as its adapter says.
"""

import os
import tomllib
from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from agent_relay.agents.adapter_folders import (
    ADAPTER_FILE,
    find_builtin_folder,
    list_folders,
    project_adapters,
    user_adapters,
)
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import get_journal_path
from agent_relay.store.session_index import find_near_root, list_index, read_sessions_at
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.disk.folders import Folders
from agent_relay.usage.native_usage import UsageRead, read_usage
from agent_relay.usage.record_files import UsageSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.usage._dedupe import Native
    from agent_relay.usage.session_work import SessionWork


_LIMIT_BYTES = 1 << 20


class _Adapter(msgspec.Struct):
    """The part of an adapter that says where its records are."""

    transcript: UsageSpec | None = None


def load_specs(folders: Folders, *, root: str, problems: list[str]) -> dict[str, UsageSpec]:
    """Return where each agent's records are, for all agents `load_adapters` would return, in its order.

    Built-in adapters were checked before release. If there are others, all are checked, and `problems` gets
    a sentence for each that is left out: figures without its records are incomplete.
    """
    if _is_there(user_adapters(folders.config)) or _is_there(project_adapters(root)):
        return _load_checked(folders, root, problems)
    found: dict[str, UsageSpec] = {}
    place = find_builtin_folder()
    for name in list_folders(place):
        try:
            text = read_bounded(os.path.join(place, name, ADAPTER_FILE), limit_bytes=_LIMIT_BYTES).decode()
            spec = msgspec.convert(tomllib.loads(_cut_table(text)), _Adapter).transcript
        except (OSError, ValueError, RelayError, RecursionError):
            return _load_checked(folders, root, problems)
        if spec is not None:
            found[name] = spec
    return found


def _cut_table(text: str) -> str:
    """Return the table `transcript` alone, as built-in adapters are written: parsing all of one is slow."""
    _, head, rest = text.partition("\n[transcript]\n")
    return head + rest.partition("\n[")[0]


def _load_checked(folders: Folders, root: str, problems: list[str]) -> dict[str, UsageSpec]:
    from agent_relay.agents.catalog import read_catalog

    catalog = read_catalog(folders, root=root)
    problems += [f"an adapter is left out: {one.sentence}" for one in catalog.broken]
    found = catalog.adapters.items()
    specs = ((str(name), one.adapter.transcript) for name, one in found)
    return {name: UsageSpec(**msgspec.structs.asdict(spec)) for name, spec in specs if spec is not None}


def _is_there(place: str) -> bool:
    """Tell whether anything exists there; true also if that cannot be seen."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class Wanted(msgspec.Struct, frozen=True):
    """Selection of work: one `session`, all on this machine, or else this repository's.

    With `is_chain` also the sessions it came from or went on in; without a `session`, the newest one's.
    """

    session: str = ""
    is_chain: bool = False
    is_all: bool = False


class Gathered(msgspec.Struct):
    """The work asked about; `is_ours_only` leaves out what native sessions did outside our legs."""

    works: "list[SessionWork]"
    natives: "list[Native]"
    read: UsageRead
    is_ours_only: bool = False
    problems: list[str] = msgspec.field(default_factory=list)


def gather_metrics(
    folders: Folders,
    wanted: Wanted,
    *,
    cwd: str,
    environ: Mapping[str, str],
    now: datetime,
) -> Gathered:
    """Return everything `wanted` is about.

    Raises WrongUseError if the session named does not exist or is not the only one of that name.
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
    problems = list[str]()
    specs = load_specs(folders, root=root, problems=problems)
    works = _read_works(everywhere if wanted.is_all or wanted.session else places, now, problems)
    read = read_usage(specs, folders.usage_index, home=environ.get("HOME", ""), environ=environ)
    gathered = Gathered(works, read.natives, read, problems=problems + read.problems)
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
    from agent_relay.agents.catalog import read_catalog

    read_catalog(folders, root=find_near_root(cwd)).get(agent)


def _keep_inside(gathered: Gathered, root: str) -> None:
    """Narrow down to what was used at `root` or below it, or by our legs there."""
    cwds = {native.cwd for native in gathered.natives}
    places, inside = {cwd: os.path.realpath(cwd) for cwd in cwds if cwd}, os.path.realpath(root)
    named = {native for work in gathered.works for leg in work.legs for native in leg.natives}
    gathered.natives = [
        native
        for native in gathered.natives
        if native.session in named or _is_below(places.get(native.cwd, ""), inside)
    ]


def _read_works(
    places: Collection[tuple[str, str]], now: datetime, problems: list[str]
) -> "list[SessionWork]":
    works = list["SessionWork"]()
    if not places:
        return works
    from agent_relay.session.fold import ImpossibleEventError
    from agent_relay.store.journal import read_events
    from agent_relay.usage._session_work_fold import fold_work

    for session, root in places:
        path = get_journal_path(root, session)
        try:
            work = fold_work(read_events(path), now)
        except RelayError as error:
            problems.append(error.sentence)
        except ImpossibleEventError:
            problems.append(f"{path} contradicts itself")
        else:
            works += [work] if work is not None else []
    return works


def _choose(gathered: Gathered, wanted: Wanted) -> None:
    """Narrow down to the one session named: ours by its id, an agent's own by `agent:id` or its id."""
    text = wanted.session
    ours = [work for work in gathered.works if _is_named(work.session, text.upper())]
    own = [one for one in gathered.natives if _is_named(one.session, text) or _is_word(one, text)]
    if len(ours) + len(own) != 1:
        what = "no session is" if not ours and not own else f"{len(ours) + len(own)} sessions are"
        raise WrongUseError(f"{what} named {text[:60]!r}", hint="See: agent-relay metrics --all")
    if wanted.is_chain:
        from agent_relay.usage._session_work_fold import find_lineage

        gathered.works, gathered.natives = find_lineage(gathered.works, gathered.natives, ours, own)
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
