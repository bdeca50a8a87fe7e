"""The line above the prompt: who works, how full, at what price, how much is left, and who rests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agent_relay.faces.cli.printing import plain
from agent_relay.faces.shell.conversation import Conversation
from agent_relay.logic.columns import count_columns
from agent_relay.logic.moments import parse_moment, render_moment
from agent_relay.logic.usage_windows import WindowRead, list_open, render_window

_GAP = " · "
_LONGEST = 40
_SPARED = (
    *("windows", "near", "windows", "cost", "model"),
    *("rests", "windows", "context", "windows", "rests"),
)
"""What is said shorter, or not at all, where there is no room for everything; the first goes first."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The moment the line is drawn at, and the zone its moments are in: the machine's own without one."""

    now: datetime
    zone: tzinfo | None = None


def render_status(
    conversation: Conversation,
    resting: Sequence[Mapping[str, object]] | None,
    *,
    state: str,
    width: int,
    clock: Clock | None = None,
) -> str:
    """One line of less than `width` columns; what is not known is left out. `state` is what happens now.

    `resting` is `None` where nobody can tell: left out, that would say that nobody rests.
    In a narrow terminal who works and what happens now stay to the last.
    """
    clock = clock or Clock(datetime.now(UTC))
    used, room = conversation.context
    agent = conversation.at_work or conversation.agent
    parts = {
        "agent": [agent or "no agent"],
        "model": [conversation.model],
        "context": [f"context {round(100 * used / room)} %" if room > 0 else ""],
        "windows": _list_windows(list_open(conversation.windows.get(agent, ()), clock.now), clock),
        "cost": [f"${conversation.cost:.2f}" if conversation.cost is not None else ""],
        "near": [_shorten(conversation.near)],
        "rests": _list_rests(resting, clock),
        "state": [state],
    }
    return _fit({name: [plain(form) for form in forms] for name, forms in parts.items()}, width - 1)


def _list_windows(windows: Sequence[WindowRead], clock: Clock) -> list[str]:
    """The windows as fully as can be, then ever shorter; the fullest is the one that stops the agent."""
    if not windows:
        return [""]
    fullest = max(windows, key=lambda window: window.used_percent)

    def join(long: Sequence[WindowRead]) -> str:
        return _GAP.join(render_window(one, clock.now, clock.zone, is_long=one in long) for one in windows)

    short = render_window(fullest, clock.now, clock.zone, is_long=False)
    return [join(windows), join([fullest]), join([]), short]


def _list_rests(resting: Sequence[Mapping[str, object]] | None, clock: Clock) -> list[str]:
    """Who rests, with the reset and without."""
    if resting is None:
        return ["who rests is unknown", "rests unknown"]
    rows = []
    for rest in resting:
        until = parse_moment(rest.get("until"))
        said = f" until {render_moment(until, clock.now, clock.zone)}" if until is not None else ""
        rows.append((f"{rest.get('agent')} rests", said))
    return [_GAP.join(agent + until for agent, until in rows), _GAP.join(agent for agent, _ in rows)]


def _fit(parts: Mapping[str, Sequence[str]], room: int) -> str:
    """The parts' first forms in one line, as many of them shortened as `room` columns ask for."""
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
