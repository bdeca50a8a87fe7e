"""Start a leg and its holder, or adopt one whose holder lives; either way, return the leg's monitor.

A headless leg has files in place of a screen.
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial

import msgspec

from agent_relay.agents.adapters import LoadedAdapter, load_rules
from agent_relay.agents.launch import (
    LEG_TOKEN,
    MCP_WORDS,
    STREAM_FILE,
    LaunchPlan,
    LegStart,
    build_headless,
    build_values,
    get_program,
    prepare_launch,
)
from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import Event, SignalSeen
from agent_relay.domain.names import HOME_VARIABLE, LEG_VARIABLE, TOKEN_VARIABLE
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.text.plain import replace_signs
from agent_relay.domain.values import LegId, replace
from agent_relay.engine.legs._trackers import LegListener, MonitorConfig
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.publishing.native_records import check_owners
from agent_relay.engine.services import (
    LaunchEnvironment,
    Services,
    read_launch_environment,
    render_launch_environment,
)
from agent_relay.engine.threads import finish
from agent_relay.session.views.waiting import NO_BAR, HandoffBar
from agent_relay.store.session_journals import write_leg_owner
from agent_relay.store.tree_owner import close_claim, hold_tree
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.processes import end_session, get_age_s
from agent_relay.terminal import leg_folder as legs
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder.child import UNASKED_FILE
from agent_relay.terminal.holder.wire import HolderSpec
from agent_relay.terminal.holder_client import HolderConnection, StartedHolder, start_holder

_log = logging.getLogger(__name__)

_PROMPT_FILE = "prompt"
ERRORS_FILE = "errors.log"
_PACKET_BYTES = 4 << 20


def load_for(services: Services, leg: Leg, environ: Mapping[str, str] | None = None) -> LoadedAdapter:
    """Return the adapter of the leg's agent for this kind of leg. Raise WrongUseError if it has none.

    It is fitted to the version installed in `environ`, which reads disk; without `environ` the version is
    unknown.
    """
    loaded = (
        services.get_adapter(leg.agent) if environ is None else services.fit_installed(leg.agent, environ)
    )
    if not leg.headless:
        return loaded
    adapter = build_headless(loaded.adapter)
    if adapter is None:
        raise WrongUseError(f"{loaded.adapter.title} cannot work without a screen, as its adapter says")
    return replace(loaded, adapter=adapter)


def check_headless(services: Services, agent: str, environ: Mapping[str, str]) -> None:
    """Raise RelayError if the agent is not installed or cannot work headless. Reads disk."""
    leg = Leg("", agent, 0, services.clock.now(), headless=True)
    get_program(load_for(services, leg), environ)


def prepare_streams(adapter: Adapter, folder: str, *, packet: str, prompt: str) -> list[str]:
    """Write the leg's input file; return the paths of its standard input, output and error.

    The input holds all the leg is to do. `packet` is the path of the packet's text, empty for none; then the
    prompt alone is given. The user's prompt is added in their words unless the packet has them already.
    Raises RelayError if a file cannot be read or written.
    """
    paths = [os.path.join(folder, name) for name in (_PROMPT_FILE, STREAM_FILE, ERRORS_FILE)]
    text = prompt
    if packet:
        said = read_bounded(packet, limit_bytes=_PACKET_BYTES).decode("utf-8", "replace")
        is_known = prompt.strip() in said
        is_pasted = adapter.deliver.packet_by == "paste"
        said = replace_signs(said, adapter.deliver.packet_escapes) if is_pasted else ""
        text = "\n\n".join(
            part for part in (said, adapter.deliver.opening, "" if is_known else prompt) if part
        )
    write_atomic(paths[0], text.encode("utf-8", "surrogateescape"), durable=False)
    return paths


def was_begun(services: Services, leg: Leg) -> bool:
    """Tell whether the leg's program may have got its prompt: then its output has a file.

    A program that a holder ended before it had read or said anything does not count.
    """
    if leg.child_pid > 0:
        return True
    folder = f"{services.folders.legs}/{leg.id}"
    return os.path.exists(f"{folder}/{STREAM_FILE}") and not os.path.exists(f"{folder}/{UNASKED_FILE}")


KnownSignals = frozenset[tuple[str, str, str, bool]]
"""(rule, text, until, decides) of the signals a journal holds."""


class LegOrder(msgspec.Struct, frozen=True):
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
        port = await _find_proxy(services, leg)
        planned = await asyncio.to_thread(_plan, services, order, made.folder, port)
        loaded, _, values, plan = planned
        launch = replace(order.launch, values=values)
        monitor = await _build_monitor(services, leg, loaded, listener, launch=launch, env=plan.env)
        place = LegPlace(leg.id, leg.starting_at, values, plan.env)
        services.evidence.follow(place, loaded.adapter.sources, monitor.hear, is_new=True)
        bound = services.proxy.port_fd if port and services.proxy is not None else -1
        started = await finish(_start_holder, order, planned, made, lock, bound)
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


_Planned = tuple[LoadedAdapter, LegStart, dict[str, str], LaunchPlan]


async def _find_proxy(services: Services, leg: Leg) -> int:
    """Return the port of the proxy that the leg's requests are to pass through; 0 for none.

    A proxy that cannot be started keeps no agent from working.
    """
    if not services.config.proxy or services.proxy is None:
        return 0
    if services.get_adapter(leg.agent).adapter.proxy is None:
        return 0
    try:
        return await services.proxy.start()
    except RelayError as error:
        _log.warning("leg-without-proxy leg=%s why=%r", leg.id, error.sentence)
        return 0


def _plan(services: Services, order: LegOrder, folder: str, port: int) -> _Planned:
    """Return how the agent is started, with what goes into it; write the files that its start needs."""
    session, leg = order.session, order.leg
    loaded = load_for(services, leg, order.launch.environ)
    write_leg_owner(folder, session.id, root=session.root, cwd=session.cwd)
    packet = _write_packet(services, session, leg, folder)
    start = replace(_build_start(services, order, folder=folder, packet=packet), proxy_port=port)
    values = build_values(loaded, leg, start)
    plan = prepare_launch(loaded, leg, start, values=values, withheld=services.withheld_keys())
    return loaded, start, values, plan


def _start_holder(
    order: LegOrder, planned: _Planned, made: legs.LegFolder, lock: int, port_fd: int
) -> StartedHolder:
    """Start the holder of a new leg, which keeps others from the working tree as long as it lives.

    A headless leg has files in place of a screen, which needs no emulator and shows no bar.
    """
    session, leg, launch = order.session, order.leg, order.launch
    loaded, start, values, plan = planned
    bar, streams = (NO_BAR if leg.headless else order.bar), None
    if leg.headless:
        streams = prepare_streams(loaded.adapter, made.folder, packet=start.packet, prompt=order.prompt)
    tree = hold_tree(session.root)
    try:
        return start_holder(
            HolderSpec(
                argv=list(plan.argv),
                env=_build_own_env(plan, order, values),
                cwd=session.cwd,
                leg_folder=made.folder,
                rows=launch.rows,
                cols=launch.cols,
                lock_fd=lock,
                tree_fd=tree,
                port_fd=port_fd,
                library="" if leg.headless else find_library() or "",
                luggage=render_launch_environment(launch, values),
                again_status=loaded.adapter.launch.relaunch_status,
                streams=streams,
                bar=list(bar.texts),
                holds_keys=bar.holds_keys,
            )
        )
    finally:
        close_claim(tree)


def _build_own_env(plan: LaunchPlan, order: LegOrder, values: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's environment with what commands of ours need that it runs: leg, folder, token.

    Without tools it has no use for a token, and those of an extension are not for it.
    """
    home = order.launch.environ.get(HOME_VARIABLE, "")
    own = {LEG_VARIABLE: order.leg.id, **({HOME_VARIABLE: home} if home else {})}
    return {**plan.env, **own, **({TOKEN_VARIABLE: values[LEG_TOKEN]} if MCP_WORDS in values else {})}


async def _undo(services: Services, made: legs.LegFolder, started: StartedHolder | None) -> None:
    """Remove everything of a leg that could not be started."""
    await services.evidence.leave(made.id)
    if started is not None:
        await asyncio.to_thread(end_session, started.child_pid, started.child_born)
    with contextlib.suppress(RelayError):
        await asyncio.to_thread(legs.remove_leg, made)


@lru_cache(maxsize=1)
def has_mcp_library() -> bool:
    """Tell whether the library of the MCP server is installed: without it no agent is given its tools."""
    return importlib.util.find_spec("mcp") is not None


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
        tool_folder=services.folders.runtime if services.config.agent_tools and has_mcp_library() else "",
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
        if services.proxy is not None:
            services.proxy.keep()
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
    marks, near = services.config.context.build_wishes(), services.config.handoff.build_near_wishes()
    says = loaded.adapter.headless.says if leg.headless and loaded.adapter.headless is not None else ()
    zone = services.find_zone(env)
    rules = await asyncio.to_thread(load_rules, loaded)
    config = MonitorConfig(rules, sources, zone, services.config.patience_s, known, marks, near, says)
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
