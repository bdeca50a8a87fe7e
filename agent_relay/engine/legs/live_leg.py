"""A living leg as the daemon holds it: started or adopted, with its monitor and launch environment."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypedDict

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.launch import LegStart, build_values, prepare_launch
from agent_relay.agents.launch_plan import LaunchPlan
from agent_relay.agents.rules import load_rules
from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Event, SignalSeen
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values.environment import LEG_VARIABLE
from agent_relay.domain.values.ids import LegId
from agent_relay.engine.legs._monitor_config import MonitorConfig
from agent_relay.engine.legs.headless import load_for, prepare_streams
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.native_owners import check_owners
from agent_relay.engine.services import Services
from agent_relay.engine.threads import finish
from agent_relay.session.handoff.status_bar import NO_BAR, HandoffBar
from agent_relay.store.session_journals import write_leg_owner
from agent_relay.store.tree_owner import close_claim, hold_tree
from agent_relay.system.disk.files import write_atomic
from agent_relay.system.processes import end_session, get_age_s
from agent_relay.terminal import leg_folder as legs
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder.spec import HolderSpec
from agent_relay.terminal.holder_client import HolderConnection, StartedHolder, start_holder

_log = logging.getLogger(__name__)
_STARTING_HOLDER_S = 5.0


class _ScreenFields(TypedDict, total=False):
    """The fields of a holder's spec that define what people see."""

    rows: int
    cols: int
    library: str
    bar: list[str]
    holds_keys: bool
    streams: list[str]


@dataclass(frozen=True, slots=True)
class LaunchEnvironment:
    """What a terminal sent for its legs, kept by the holder in memory so that it never touches the disk.

    `environ` is the user's whole environment; `args` and `model` were given for `agent` alone; `values` are
    what filled the leg's placeholders. `task` is what it is to work on, in the user's own words: the journal
    has them without secrets. `more` is what another version added: it is given to later legs.
    """

    environ: Mapping[str, str] = field(repr=False)
    agent: str = ""
    rows: int = 24
    cols: int = 80
    args: tuple[str, ...] = ()
    model: str = ""
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    task: str = field(default="", repr=False)
    more: Mapping[str, object] = field(default_factory=dict, repr=False)


_FIELDS = {each.name for each in fields(LaunchEnvironment)} - {"more"}

KnownSignals = frozenset[tuple[str, str, str, bool]]
"""(rule, text, until, decides) of the signals a journal holds."""


@dataclass(frozen=True, slots=True)
class LiveLeg:
    """A leg whose holder lives."""

    leg: Leg
    adapter: Adapter
    holder_pid: int
    child_pid: int
    child_born: int
    luggage: LaunchEnvironment
    watch: LegMonitor

    async def reconnect(self, services: Services) -> None:
        """Give the monitor a new connection to the holder. Raise HolderError if there can be none."""
        before = self.watch.holder
        self.watch.holder = await HolderConnection.open(f"{services.folders.legs}/{self.leg.id}")
        await before.close()

    async def close(self) -> None:
        """Close the connection to the holder; it and its agent, if they live, run on."""
        await self.watch.holder.close()


async def start_leg(
    services: Services,
    session: Session,
    leg: Leg,
    luggage: LaunchEnvironment,
    *,
    prompt: str = "",
    bar: HandoffBar = NO_BAR,
) -> LiveLeg:
    """Start the leg and its holder, or adopt it if its holder still runs from before a crash.

    `prompt` is the user's, for a headless leg; another leg gets its own when it is ready. Its terminals show
    `bar` from their first moment on. Raises RelayError if it cannot be started; nothing of it is left then.
    """
    folder = f"{services.folders.legs}/{leg.id}"
    if await asyncio.to_thread(os.path.isdir, folder):
        place = legs.LegFolder(LegId(leg.id), folder)
        lock = await asyncio.to_thread(legs.try_lock, place)
        if lock is None:
            return await adopt_leg(services, leg, frozenset())
        os.close(lock)
        await asyncio.to_thread(legs.remove_leg, place)
    await check_owners(services, session, luggage.environ, leg.agent)
    return await _start(services, session, leg, luggage, prompt=prompt, bar=bar)


async def read_launch_environment(holder: HolderConnection) -> LaunchEnvironment:
    """Return the launch environment of the holder's leg.

    Raises RelayError if the holder kept something else or is gone.
    """
    return parse_launch_environment(await holder.luggage())


async def _start(
    services: Services,
    session: Session,
    leg: Leg,
    luggage: LaunchEnvironment,
    *,
    prompt: str,
    bar: HandoffBar,
) -> LiveLeg:
    """Start the leg in a new folder. Raise RelayError if that fails; nothing of it is left then."""
    made, lock = await asyncio.to_thread(legs.create_leg, services.folders, LegId(leg.id))
    try:
        return await _start_in(made, lock, services, session, leg, luggage=luggage, prompt=prompt, bar=bar)
    finally:
        os.close(lock)


async def _start_in(
    made: legs.LegFolder,
    lock: int,
    services: Services,
    session: Session,
    leg: Leg,
    *,
    luggage: LaunchEnvironment,
    prompt: str,
    bar: HandoffBar,
) -> LiveLeg:
    started: StartedHolder | None = None
    is_whole = False
    try:
        prepare = partial(_plan, services, session, leg, luggage, folder=made.folder)
        loaded, start, values, plan = await asyncio.to_thread(prepare)
        watch = await _follow_new(services, leg, loaded, values, plan)
        give = partial(prepare_streams, loaded.adapter, made.folder, packet=start.packet, prompt=prompt)
        streams = await asyncio.to_thread(give) if leg.headless else []
        spec = partial(
            HolderSpec,
            argv=list(plan.argv),
            env={**plan.env, LEG_VARIABLE: leg.id},
            cwd=session.cwd,
            leg_folder=made.folder,
            lock_fd=lock,
            luggage=render_launch_environment(luggage, values),
            again_status=loaded.adapter.launch.relaunch_status,
            **_build_screen_fields(leg, luggage, bar, streams),
        )
        started = await finish(_start_holder, spec, session.root)
        watch.holder = await HolderConnection.open(made.folder)
        is_whole = True
    except asyncio.CancelledError:
        # The daemon leaves: what was begun is whole, and the next one adopts it.
        is_whole = True
        raise
    finally:
        if not is_whole:
            await _undo(services, made, started)
    if started.emulator_error and not leg.headless:
        _log.warning("no-emulator leg=%s", leg.id)
    services.evidence.update(leg.id, pid=str(started.child_pid))
    pids = (started.holder_pid, started.child_pid, started.child_born)
    return LiveLeg(leg, loaded.adapter, *pids, luggage, watch)


def _plan(
    services: Services, session: Session, leg: Leg, luggage: LaunchEnvironment, *, folder: str
) -> tuple[LoadedAdapter, LegStart, dict[str, str], LaunchPlan]:
    """Return how the agent is started, with what goes into it; write the files that its start needs."""
    loaded = load_for(services, leg, luggage.environ)
    packet = _write_files(services, session, leg, folder)
    start = _build_start(services, session, leg, luggage, folder=folder, packet=packet)
    values = build_values(loaded, leg, start)
    plan = prepare_launch(loaded, leg, start, values=values, withheld=services.withheld_keys())
    return loaded, start, values, plan


async def _follow_new(
    services: Services, leg: Leg, loaded: LoadedAdapter, values: dict[str, str], plan: LaunchPlan
) -> LegMonitor:
    """Return the monitor of a leg about to start, its evidence followed from its first line on."""
    watch = await _build_watch(services, leg, loaded, plan.env)
    place = LegPlace(leg.id, leg.starting_at, values, plan.env)
    services.evidence.follow(place, loaded.adapter.sources, watch.hear, is_new=True)
    return watch


def _build_screen_fields(
    leg: Leg, luggage: LaunchEnvironment, bar: HandoffBar, streams: list[str]
) -> _ScreenFields:
    """Return what people see of a leg: a screen with its size and bar, or files if it has none."""
    if leg.headless:
        return {"rows": luggage.rows, "cols": luggage.cols, "streams": streams}
    return {
        "rows": luggage.rows,
        "cols": luggage.cols,
        "library": find_library() or "",
        "bar": list(bar.texts),
        "holds_keys": bar.holds_keys,
    }


def _start_holder(spec: Callable[..., HolderSpec], root: str) -> StartedHolder:
    """Start the holder of a new leg, which keeps others from the working tree `root` as long as it lives."""
    tree = hold_tree(root)
    try:
        return start_holder(spec(tree_fd=tree))
    finally:
        close_claim(tree)


async def _undo(services: Services, made: legs.LegFolder, started: StartedHolder | None) -> None:
    """Remove everything of a leg that could not be started."""
    await services.evidence.leave(made.id)
    if started is not None:
        await asyncio.to_thread(end_session, started.child_pid, started.child_born)
    with contextlib.suppress(RelayError):
        await asyncio.to_thread(legs.remove_leg, made)


def _build_start(
    services: Services, session: Session, leg: Leg, luggage: LaunchEnvironment, *, folder: str, packet: str
) -> LegStart:
    """Build the leg's start; arguments and model of the command line apply only to the agent named there.

    A model that relay chose, because another one is limited, takes precedence over the command line's and the
    configured one.
    """
    wishes = services.config.get_agent(leg.agent)
    mine = luggage.agent == leg.agent
    return LegStart(
        folder,
        session.cwd,
        luggage.environ,
        packet=packet,
        model=leg.model or (luggage.model if mine else "") or wishes.model,
        args=(*wishes.args, *(luggage.args if mine else ())),
        may_continue=services.config.may_ever_continue,
    )


async def adopt_leg(services: Services, leg: Leg, known: KnownSignals) -> LiveLeg:
    """Monitor the leg of a living holder again. Raise RelayError if the holder does not answer."""
    loaded = load_for(services, leg)
    holder, is_adopted = await HolderConnection.open(f"{services.folders.legs}/{leg.id}"), False
    try:
        hello = await holder.request("hello")
        pids = (_number(hello, "pid"), _number(hello, "child"), _number(hello, "born"))
        leg = _redate(leg, services.clock.now(), pids[2])
        luggage = await read_launch_environment(holder)
        env = dict(luggage.environ)
        watch = await _build_watch(services, leg, loaded, env, known)
        place = LegPlace(leg.id, leg.starting_at, {**luggage.values, "pid": str(pids[1])}, env)
        services.evidence.follow(place, loaded.adapter.sources, watch.hear, is_new=False)
        is_adopted = True
    finally:
        if not is_adopted:
            await services.evidence.leave(leg.id)
            await holder.close()
    watch.holder = holder
    return LiveLeg(leg, loaded.adapter, *pids, luggage, watch)


def _redate(leg: Leg, now: datetime, child_born: int) -> Leg:
    """Return the leg dated by the clock as it is set now: it may have been set back while no daemon ran."""
    since = now - timedelta(seconds=get_age_s(child_born))
    return replace(leg, starting_at=min(leg.starting_at, since)) if child_born else leg


async def _build_watch(
    services: Services,
    leg: Leg,
    loaded: LoadedAdapter,
    env: Mapping[str, str],
    known: KnownSignals = frozenset(),
) -> LegMonitor:
    sources = loaded.adapter.sources
    # Between two headless turns nobody is there to be compacted, and within one nobody may be asked.
    wishes = services.config.context.build_wishes()
    says = loaded.adapter.headless.says if leg.headless and loaded.adapter.headless is not None else ()
    zone = services.find_zone(env)
    rules = await asyncio.to_thread(load_rules, loaded)
    config = MonitorConfig(rules, sources, zone, services.config.patience_s, known, wishes, says)
    return LegMonitor(leg, config, clock=services.clock, poke=partial(services.evidence.poke, leg.id))


def _write_files(services: Services, session: Session, leg: Leg, folder: str) -> str:
    """Write the leg's owner and packet into its folder. Return and raise as `_write_packet` does."""
    write_leg_owner(folder, session.id, root=session.root, cwd=session.cwd)
    return _write_packet(services, session, leg, folder)


def _write_packet(services: Services, session: Session, leg: Leg, folder: str) -> str:
    """Write the leg's packet, as the user left it and checked against the tree now; return its path.

    Empty if the leg starts from no packet. Raises RelayError if the packet cannot be trusted.
    """
    handoff = session.handoff
    if handoff is None or handoff.id != leg.handoff or not handoff.text_path:
        return ""
    # A first leg has none.
    from agent_relay.engine.publishing.publish import read_packet_text

    path = f"{folder}/packet.md"
    write_atomic(path, read_packet_text(services, session, handoff).encode(), durable=False)
    return path


def find_known(events: Sequence[Event], leg_id: str) -> KnownSignals:
    """Return the signals of this leg that the journal holds."""
    return frozenset(
        (event.body.rule, event.body.text, event.body.until, event.body.decides)
        for event in events
        if isinstance(event.body, SignalSeen) and event.body.leg == leg_id
    )


def _number(answer: Mapping[str, object], name: str) -> int:
    value = answer.get(name)
    if not isinstance(value, int):
        raise RelayError(f"a holder's answer lacks {name}")
    return value


def render_launch_environment(luggage: LaunchEnvironment, values: Mapping[str, str]) -> str:
    """Return the text a holder keeps of `luggage`, with `values` for its leg's placeholders."""
    known = {**asdict(luggage), "values": dict(values)}
    del known["more"]
    return json.dumps({**luggage.more, **known})


def parse_launch_environment(text: str) -> LaunchEnvironment:
    """Parse the text a holder kept, of this version or another one, which may know more or less.

    Raises RelayError if it is something else: without the user's environment nothing can be started.
    """
    try:
        found = json.loads(text)
        known = {name: found.pop(name) for name in _FIELDS & found.keys()}
        luggage = LaunchEnvironment(**{**known, "args": tuple(known.get("args", ())), "more": found})
    except (ValueError, TypeError, AttributeError, RecursionError):
        luggage = None
    environ = luggage.environ if luggage is not None else None
    if (
        luggage is None
        or not isinstance(environ, dict)
        or not all(isinstance(one, str) for one in environ.values())
    ):
        raise RelayError("a holder's luggage is not ours")
    return luggage
