"""Draws the picture of a session over time that the pages show, as `handoff history` draws it on a terminal.

python docs/timeline_picture.py
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO

from rich.console import Console
from rich.text import Text

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.protocol.timeline import TimelineUsage
from agent_relay.domain.protocol.watch_output import WindowUsed
from agent_relay.faces.cli.session.handoffs.drawing import draw_timeline
from agent_relay.session.views.timeline import build_timeline
from docs.failover_picture import SVG_FORMAT

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURE = f"{HERE}/timeline.svg"
START = datetime(2026, 11, 20, 12, 10, tzinfo=UTC)
RESET = START + timedelta(hours=4, minutes=20)
NOW = START + timedelta(hours=4, minutes=58)
COLUMNS = 116
ABOUT = "A session over time: claude meets its limit, codex takes over, and after the reset claude goes on"
USAGE = {
    "A1": TimelineUsage(tokens=1_284_310, tokens_are_whole=True, cost_usd="3.41", cost_is_whole=True),
    "B1": TimelineUsage(tokens=802_144, tokens_are_whole=True, cost_usd="1.21", cost_is_whole=True),
    "A2": TimelineUsage(tokens=411_902, tokens_are_whole=True, cost_usd="0.96", cost_is_whole=True),
}
WINDOWS = {
    "claude": (
        WindowUsed(
            name="five_hour", minutes=300, used_percent=11, resets_at=(RESET + timedelta(hours=5)).isoformat()
        ),
    )
}
LIMIT = events.SignalSeen(
    "A1",
    "claude",
    "limit",
    "account",
    "screen",
    "You've hit your session limit",
    decides=True,
    until=RESET.isoformat(),
)


def build_journal() -> list[events.Event]:
    """The session: an hour of work, a limit, an hour with the successor, a pause, and the way back."""
    lines: list[tuple[float, events.Body]] = [
        (0, events.SessionCreated("S", "/home/ann/shop", "/home/ann/shop", ("claude", "codex"), "a parser")),
        *start(0, "A1", "claude", ""),
        *turns("A1", (1, 9), (12, 26), (31, 44.5)),
        (44.5, LIMIT),
        *hand_over(44.6, ("A1", "claude"), ("B1", "codex"), "rate_limit"),
        *turns("B1", (45.2, 58), (63, 71), (74, 92)),
        *hand_over(272, ("B1", "codex"), ("A2", "claude"), "return"),
        *turns("A2", (272.6, 280), (283, 291)),
    ]
    return [
        events.Event(number, START + timedelta(minutes=minutes), 1, body)
        for number, (minutes, body) in enumerate(lines, 1)
    ]


def start(at: float, leg: str, agent: str, handoff: str) -> list[tuple[float, events.Body]]:
    """A leg starts."""
    return [
        (at, events.LegStarting(leg, agent, 1, handoff=handoff)),
        (at, events.LegStarted(leg, 10, 11, 12)),
        (at, events.LegReady(leg)),
    ]


def turns(leg: str, *spans: tuple[float, float]) -> list[tuple[float, events.Body]]:
    """Turns of a leg, each from one minute to another."""
    pairs = [((begin, events.LegBusy(leg)), (end, events.LegReady(leg))) for begin, end in spans]
    ends = [line for pair in pairs for line in pair]
    # The limit ends the last turn of the first leg.
    return ends[:-1] if leg == "A1" else ends


def hand_over(
    at: float, before: tuple[str, str], after: tuple[str, str], reason: str
) -> list[tuple[float, events.Body]]:
    """One leg and its agent give way to another."""
    handoff = f"H{after[0]}"
    return [
        (at, work.HandoffBegun(handoff, before[0], before[1], after[1], reason)),
        (at, events.LegEnded(before[0], "stopped")),
        (at, work.PredecessorStopped(handoff, before[0])),
        (at, work.PacketPublished(handoff, "P", 1, after[1], "resume/1.json", "resume/1.md", "f")),
        *start(at, after[0], after[1], handoff),
        (at, work.PacketDelivered(handoff, after[0])),
        (at + 0.1, events.LegBusy(after[0])),
        (at + 0.1, work.HandoffConfirmed(handoff, after[0])),
        (at + 0.2, events.LegReady(after[0])),
    ]


def render() -> str:
    """Return the picture."""
    timeline = build_timeline(build_journal(), USAGE, WINDOWS)
    if timeline is None:
        raise AssertionError("the journal begins with its session")
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    lines = [
        "$ agent-relay handoff history",
        *draw_timeline(timeline, NOW, UTC, width=COLUMNS, is_plain=False),
    ]
    for line in lines:
        console.print(Text(line), no_wrap=True, overflow="fold", crop=False)
    picture = console.export_svg(
        title="", code_format=SVG_FORMAT, unique_id="timeline", font_aspect_ratio=0.6
    )
    return picture.replace("<style>", f"<title>{ABOUT}</title>\n<style>", 1)


def main() -> None:
    """Write the picture."""
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(render())


if __name__ == "__main__":
    main()
