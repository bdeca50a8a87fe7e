"""Start a leg and its holder, or adopt one whose holder lives; either way, return the leg's monitor."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypedDict

from agent_relay.agents.adapters import LoadedAdapter, load_rules
from agent_relay.agents.launch import LaunchPlan, LegStart, build_values, prepare_launch
from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Event, SignalSeen
from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import LegId
from agent_relay.engine.legs._trackers import LegListener, MonitorConfig
from agent_relay.engine.legs.adopted_programs import check_owners
from agent_relay.engine.legs.headless import load_for, prepare_streams
from agent_relay.engine.legs.launch_environment import (
    LaunchEnvironment,
    read_launch_environment,
    render_launch_environment,
)
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import Services
from agent_relay.engine.threads import finish
from agent_relay.session.views.waiting import NO_BAR, HandoffBar
from agent_relay.store.session_journals import write_leg_owner
from agent_relay.store.tree_owner import close_claim, hold_tree
from agent_relay.system.disk.files import write_atomic
from agent_relay.system.processes import end_session, get_age_s
from agent_relay.terminal import leg_folder as legs
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder.wire import HolderSpec
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


KnownSignals = frozenset[tuple[str, str, str, bool]]
"""(rule, text, until, decides) of the signals a journal holds."""


@dataclass(frozen=True, slots=True)
class LegOrder:
    """A leg of `session` to be started in the user's environment.

    `prompt` is the user's, for a headless leg; another leg gets its own when it is ready. Its terminals show
    `bar` from their first moment on.
    """

    session: Session
    leg: Leg
    launch: LaunchEnvironment
    prompt: str = ""
    bar: HandoffBar = NO_BAR


async def start_leg(services: Services, order: LegOrder, listener: LegListener) -> LegMonitor:
    """Start the leg and its holder, or adopt it if its holder still runs from before a crash.

    Raises RelayError if it cannot be started; nothing of it is left then.
    """
    leg = order.leg
    folder = f"{services.folders.legs}/{leg.id}"
    if await asyncio.to_thread(os.path.isdir, folder):
        place = legs.LegFolder(LegId(leg.id), folder)
        lock = await asyncio.to_thread(legs.try_lock, place)
        if lock is None:
            return await adopt_leg(services, leg, frozenset(), listener)
        os.close(lock)
        await asyncio.to_thread(legs.remove_leg, place)
    await check_owners(services, order.session, order.launch.environ, leg.agent)
    made, held = await asyncio.to_thread(legs.create_leg, services.folders, LegId(leg.id))
    try:
        return await _start(services, order, listener, made, held)
    finally:
        os.close(held)


async def _start(
    services: Services, order: LegOrder, listener: LegListener, made: legs.LegFolder, lock: int
) -> LegMonitor:
    """Start the leg in a new folder. Raise RelayError if that fails; nothing of it is left then."""
    leg, started, is_whole = order.leg, None, False
    try:
        loaded, start, values, plan = await asyncio.to_thread(_plan, services, order, made.folder)
        monitor = await _build_monitor(services, leg, loaded, listener, launch=order.launch, env=plan.env)
        place = LegPlace(leg.id, leg.starting_at, values, plan.env)
        services.evidence.follow(place, loaded.adapter.sources, monitor.hear, is_new=True)
        give = partial(prepare_streams, loaded.adapter, made.folder, packet=start.packet, prompt=order.prompt)
        streams = await asyncio.to_thread(give) if leg.headless else []
        spec = partial(
            HolderSpec,
            argv=list(plan.argv),
            env={**plan.env, LEG_VARIABLE: leg.id},
            cwd=order.session.cwd,
            leg_folder=made.folder,
            lock_fd=lock,
            luggage=render_launch_environment(order.launch, values),
            again_status=loaded.adapter.launch.relaunch_status,
            **_build_screen_fields(order, streams),
        )
        started = await finish(_start_holder, spec, order.session.root)
        pids = (started.holder_pid, started.child_pid, started.child_born)
        monitor.connect(await HolderConnection.open(made.folder), *pids)
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
    return monitor


def _plan(
    services: Services, order: LegOrder, folder: str
) -> tuple[LoadedAdapter, LegStart, dict[str, str], LaunchPlan]:
    """Return how the agent is started, with what goes into it; write the files that its start needs."""
    session, leg = order.session, order.leg
    loaded = load_for(services, leg, order.launch.environ)
    write_leg_owner(folder, session.id, root=session.root, cwd=session.cwd)
    packet = _write_packet(services, session, leg, folder)
    start = _build_start(services, order, folder=folder, packet=packet)
    values = build_values(loaded, leg, start)
    plan = prepare_launch(loaded, leg, start, values=values, withheld=services.withheld_keys())
    return loaded, start, values, plan


def _build_screen_fields(order: LegOrder, streams: list[str]) -> _ScreenFields:
    """Return what people see of a leg: a screen with its size and bar, or files if it has none."""
    rows, cols = order.launch.rows, order.launch.cols
    if order.leg.headless:
        return {"rows": rows, "cols": cols, "streams": streams}
    return {
        "rows": rows,
        "cols": cols,
        "library": find_library() or "",
        "bar": list(order.bar.texts),
        "holds_keys": order.bar.holds_keys,
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


def _build_start(services: Services, order: LegOrder, *, folder: str, packet: str) -> LegStart:
    """Build the leg's start; arguments and model of the command line apply only to the agent named there.

    A model that relay chose, because another one is limited, takes precedence over the command line's and the
    configured one.
    """
    leg, launch = order.leg, order.launch
    settings = services.config.get_agent(leg.agent)
    mine = launch.agent == leg.agent
    return LegStart(
        folder,
        order.session.cwd,
        launch.environ,
        packet=packet,
        model=leg.model or (launch.model if mine else "") or settings.model,
        args=(*settings.args, *(launch.args if mine else ())),
        may_continue=services.config.may_ever_continue,
    )


async def adopt_leg(services: Services, leg: Leg, known: KnownSignals, listener: LegListener) -> LegMonitor:
    """Monitor the leg of a living holder again. Raise RelayError if the holder does not answer."""
    loaded = load_for(services, leg)
    holder, is_adopted = await HolderConnection.open(f"{services.folders.legs}/{leg.id}"), False
    try:
        hello = await holder.request("hello")
        pids = (_number(hello, "pid"), _number(hello, "child"), _number(hello, "born"))
        leg = _redate(leg, services.clock.now(), pids[2])
        launch = await read_launch_environment(holder)
        env = dict(launch.environ)
        monitor = await _build_monitor(services, leg, loaded, listener, launch=launch, env=env, known=known)
        monitor.connect(holder, *pids)
        place = LegPlace(leg.id, leg.starting_at, {**launch.values, "pid": str(pids[1])}, env)
        services.evidence.follow(place, loaded.adapter.sources, monitor.hear, is_new=False)
        is_adopted = True
    finally:
        if not is_adopted:
            await services.evidence.leave(leg.id)
            await holder.close()
    return monitor


def _redate(leg: Leg, now: datetime, child_born: int) -> Leg:
    """Return the leg dated by the clock as it is set now: it may have been set back while no daemon ran."""
    since = now - timedelta(seconds=get_age_s(child_born))
    return replace(leg, starting_at=min(leg.starting_at, since)) if child_born else leg


async def _build_monitor(
    services: Services,
    leg: Leg,
    loaded: LoadedAdapter,
    listener: LegListener,
    *,
    launch: LaunchEnvironment,
    env: Mapping[str, str],
    known: KnownSignals = frozenset(),
) -> LegMonitor:
    sources = loaded.adapter.sources
    # Between two headless turns nobody is there to be compacted, and within one nobody may be asked.
    marks = services.config.context.build_wishes()
    says = loaded.adapter.headless.says if leg.headless and loaded.adapter.headless is not None else ()
    zone = services.find_zone(env)
    rules = await asyncio.to_thread(load_rules, loaded)
    config = MonitorConfig(rules, sources, zone, services.config.patience_s, known, marks, says)
    return LegMonitor(
        leg,
        config,
        adapter=loaded.adapter,
        launch_environment=launch,
        clock=services.clock,
        poke=partial(services.evidence.poke, leg.id),
        listener=listener,
    )


def _write_packet(services: Services, session: Session, leg: Leg, folder: str) -> str:
    """Write the leg's packet, as the user left it and checked against the tree now; return its path.

    Empty if the leg starts from no packet. Raises RelayError if the packet cannot be trusted.
    """
    handoff = session.handoff
    if handoff is None or handoff.id != leg.handoff or not handoff.text_path:
        return ""
    # A first leg has none.
    from agent_relay.engine.publishing.packet_pipeline import read_packet_text

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
