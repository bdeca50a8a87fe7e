"""The line above the prompt: the agent, its context, cost and usage windows, and who rests.

A thread asks the daemon for the usage windows, only after its notices, so that an idle shell asks nothing.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial

from agent_relay.client.connection import Connection
from agent_relay.detect.window_usage import WindowUsage, list_current_windows, parse_windows, render_window
from agent_relay.domain.errors import RelayError
from agent_relay.domain.moments import render_reset_text
from agent_relay.domain.text.plain import count_columns
from agent_relay.faces.render.output import plain
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._terminal import call_in_loop

_GAP = " · "
_LONGEST = 40
_SPARED = (
    *("windows", "near", "windows", "cost", "model"),
    *("rests", "windows", "context", "windows", "rests"),
)
"""Parts that are shortened or left out, in this order, if there is no room for everything."""


@dataclass(frozen=True, slots=True)
class StatusTime:
    """The moment the line is drawn at, and the zone for its moments; `None` is the machine's own."""

    now: datetime
    zone: tzinfo | None = None


def render_status(
    conversation: Conversation,
    resting: Sequence[Mapping[str, object]] | None,
    *,
    state: str,
    width: int,
    clock: StatusTime | None = None,
) -> str:
    """Return one line of less than `width` columns; what is not known is left out.

    `state` is what happens now. `resting` is `None` if it is unknown who rests: the line says so, because
    nothing there means that no agent rests. In a narrow terminal the agent and what happens now are cut last.
    """
    clock = clock or StatusTime(datetime.now(UTC))
    used, room = conversation.context
    agent = conversation.at_work or conversation.agent
    parts = {
        "agent": [agent or "no agent"],
        "model": [conversation.model],
        "context": [f"context {round(100 * used / room)} %" if room > 0 else ""],
        "windows": _list_windows(list_current_windows(conversation.windows.get(agent, ()), clock.now), clock),
        "cost": [f"${conversation.cost:.2f}" if conversation.cost is not None else ""],
        "near": [_shorten(conversation.near)],
        "rests": _list_rests(resting, clock),
        "state": [state],
    }
    return _fit({name: [plain(form) for form in forms] for name, forms in parts.items()}, width - 1)


def _list_windows(windows: Sequence[WindowUsage], clock: StatusTime) -> list[str]:
    """Return the windows as fully as can be, then ever shorter; the last form is the fullest window only.

    The fullest window is the one that stops the agent.
    """
    if not windows:
        return [""]
    fullest = max(windows, key=lambda window: window.used_percent)

    def join(long: Sequence[WindowUsage]) -> str:
        return _GAP.join(render_window(one, clock.now, clock.zone, is_long=one in long) for one in windows)

    short = render_window(fullest, clock.now, clock.zone, is_long=False)
    return [join(windows), join([fullest]), join([]), short]


def _list_rests(resting: Sequence[Mapping[str, object]] | None, clock: StatusTime) -> list[str]:
    """Return who rests, with the reset and without."""
    if resting is None:
        return ["resting agents unknown", "rests unknown"]
    rows = []
    for rest in resting:
        assumed = rest.get("assumed") is True
        until = render_reset_text(rest.get("until"), clock.now, clock.zone, assumed=assumed)
        suffix = f" until {until}" if until else ""
        rows.append((f"{rest.get('agent')} rests", suffix))
    return [_GAP.join(agent + until for agent, until in rows), _GAP.join(agent for agent, _ in rows)]


def _fit(parts: Mapping[str, Sequence[str]], room: int) -> str:
    """Return the parts' first forms in one line, as many of them shortened as `room` columns require."""
    waiting = {name: list(forms) for name, forms in parts.items()}
    for spared in (*_SPARED, ""):
        line = _GAP.join(forms[0] for forms in waiting.values() if forms and forms[0])
        if not spared or count_columns(line) <= room:
            break
        del waiting[spared][:1]
    while count_columns(line) > max(0, room):
        line = line[:-1]
    return line.rstrip(_GAP)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


Windows = Mapping[str, Sequence[WindowUsage]]

_WORKING_S = 15.0
"""Seconds between requests to the daemon while an agent works: no change of state sends a notice then."""
_BUNDLE_S = 0.5
"""Wait for more notices after one, in seconds."""
_AGAIN_S = 5.0


def watch_usage(
    connect: Callable[[], Connection], *, is_working: Callable[[], bool], tell: Callable[[Windows], None]
) -> None:
    """Start a thread that has the loop call `tell` on new usage windows, until this process ends.

    It waits for the daemon's notices, so that an idle shell asks nothing.
    """
    loop = asyncio.get_running_loop()

    def tell_on(windows: Windows) -> None:
        call_in_loop(loop, partial(tell, windows))

    work = partial(_watch, connect, is_working, tell_on)
    threading.Thread(target=work, name="usage", daemon=True).start()


def _watch(
    connect: Callable[[], Connection], is_working: Callable[[], bool], tell: Callable[[Windows], None]
) -> None:
    pause = threading.Event()
    while True:
        try:
            with connect() as connection:
                connection.subscribe()
                listen(connection, is_working, tell)
        except (RelayError, OSError):
            # There is no daemon now: what is known stays true until its reset.
            pause.wait(_AGAIN_S)


def listen(connection: Connection, is_working: Callable[[], bool], tell: Callable[[Windows], None]) -> None:
    """Call `tell` on new usage windows; never return. Raise RelayError when the daemon leaves."""
    known: Windows = {}
    while True:
        found = parse_windows(connection.request("session.list").get("windows"))
        if found != known:
            known = found
            tell(known)
        for _ in connection.notices(limit_s=_WORKING_S if is_working() else None):
            break
        for _ in connection.notices(limit_s=_BUNDLE_S):
            continue
