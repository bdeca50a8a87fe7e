"""Draw a session on a terminal of any width: over time, and as a tree of its legs and handoffs.

Over time each agent has a row, with its figures below; in the tree each leg and handoff is below what it
continues.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal

from agent_relay.domain.moments import parse_moment, render_moment, render_moment_text
from agent_relay.domain.protocol.timeline import (
    TimelineHandoff,
    TimelineLane,
    TimelineLeg,
    TimelineRest,
    TimelineTold,
    TimelineUsage,
)
from agent_relay.domain.text.names import name_rest, name_window
from agent_relay.domain.text.plain import count_columns, render_count
from agent_relay.faces.cli.session.handoffs.evidence import build_askers, count_met, list_askers
from agent_relay.faces.cli.session.handoffs.records import Lineage, get_now, measure_work
from agent_relay.faces.render.output import plain
from agent_relay.session.handoff_history import HandoffRecord, LegRecord
from agent_relay.session.views.summary import cut_columns
from agent_relay.usage.packet_use import PacketUse
from agent_relay.usage.table_format import render_cost, render_span

_WIDEST = 120
_WIDEST_LABEL = 16
_LEAST_CHART = 24
_GAP_COLUMNS = 2
_MOST_RESTS = 3
_SESSION_ROW = "at rest"
_HANDOFF_ROW = "handoffs"
_MOST_HANDOFF_ROWS = 3


@dataclass(frozen=True, slots=True)
class _Signs:
    turn: str
    leg: str
    rest: str
    gap: str
    handoff: str


_BLOCKS = _Signs("█", "─", "░", "≈", "▲")
_PLAIN = _Signs("#", "-", ":", "~", "^")


class TimeAxis:
    """Maps moments to columns: evenly, but a gap takes two columns however long it is."""

    def __init__(self, timeline: TimelineTold, now: datetime, columns: int) -> None:
        self.columns = columns
        self.begin, last = datetime.fromisoformat(timeline.begin), datetime.fromisoformat(timeline.last)
        self.end = last if timeline.is_over else max(now, last)
        gaps = [_read_span(gap.begin, gap.end) for gap in timeline.gaps]
        if not timeline.is_busy and (self.end - last).total_seconds() > timeline.idle_s:
            gaps.append((last, self.end))
        # Every gap needs room beside the others: on a narrow terminal the shortest ones are drawn in full.
        most = columns // (4 * _GAP_COLUMNS)
        longest = sorted(gaps, key=lambda gap: gap[1] - gap[0])[-most:] if most else []
        self.gaps = sorted(longest)
        left_out = sum((end - begin for begin, end in self.gaps), timedelta())
        self._total = (self.end - self.begin - left_out).total_seconds()
        self._room = columns - _GAP_COLUMNS * len(self.gaps)

    def find(self, at: datetime) -> int:
        """Return the column of a moment, from 0 to below `columns`; of one outside, the nearest."""
        at = min(max(at, self.begin), self.end)
        passed, columns = at - self.begin, 0
        for begin, end in self.gaps:
            if at < begin:
                break
            passed -= min(at, end) - begin
            columns += _GAP_COLUMNS if at >= end else 0
        share = passed.total_seconds() / self._total if self._total > 0 else 0.0
        return min(self.columns - 1, columns + int(share * self._room))

    def list_gap_columns(self) -> list[int]:
        """Return the columns that stand for gaps."""
        firsts = [self.find(begin) for begin, _ in self.gaps]
        return [
            first + part for first in firsts for part in range(_GAP_COLUMNS) if first + part < self.columns
        ]


def draw_timeline(
    timeline: TimelineTold, now: datetime, zone: tzinfo | None, *, width: int, is_plain: bool
) -> list[str]:
    """Return the drawing, what its signs mean, and a line for each agent.

    Without room for a drawing the lines alone; those are not cut.
    """
    names = {lane.agent: cut_columns(plain(lane.agent), _WIDEST_LABEL) for lane in timeline.lanes}
    label = max(len(_HANDOFF_ROW), *map(count_columns, names.values()), 0) if names else 0
    columns = min(width, _WIDEST) - label - 2
    lines = [_render_head(timeline, now, zone)]
    if columns >= _LEAST_CHART and names:
        axis = TimeAxis(timeline, now, columns)
        signs = _PLAIN if is_plain else _BLOCKS
        rows = [("", _draw_scale(axis, zone))]
        rows += [(names[lane.agent], _draw_lane(lane, axis, signs)) for lane in timeline.lanes]
        if timeline.rests:
            rows.append((_SESSION_ROW, _draw_rests(timeline.rests, axis, signs)))
        rows += _draw_handoffs(timeline.handoffs, axis, signs)
        drawn = [f"{name}{' ' * (label - count_columns(name))}  {row}".rstrip() for name, row in rows]
        lines += [*drawn, _render_legend(timeline, drawn[1:], signs)]
    lines += [_render_lane(lane, names[lane.agent], now, zone) for lane in timeline.lanes]
    if timeline.clock_was_set_back:
        lines.append("The clock was set back meanwhile: what is drawn at one moment may be an hour apart.")
    return lines


def _read_span(begin: str, end: str) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(begin), datetime.fromisoformat(end)


def _render_head(timeline: TimelineTold, now: datetime, zone: tzinfo | None) -> str:
    begin, last = _read_span(timeline.begin, timeline.last)
    end = last if timeline.is_over else max(now, last)
    until = render_moment(end, now, zone) if timeline.is_over else "now"
    parts = [
        f"{render_moment(begin, now, zone)} to {until}",
        render_span(round((end - begin).total_seconds() * 1000)),
        render_count(timeline.turn_count, "turn"),
        *([render_count(len(timeline.handoffs), "handoff")] if timeline.handoffs else []),
        *list_usage(timeline.usage, timeline.turn_count),
    ]
    return f"timeline  {', '.join(parts)}"


def _draw_scale(axis: TimeAxis, zone: tzinfo | None) -> str:
    """Return the times at which the drawing begins, goes on after a gap, and ends, as far as they fit."""
    row, before = "", axis.begin.astimezone(zone)
    moments = [(axis.begin, 0), *((end, axis.find(end)) for _, end in axis.gaps if end < axis.end)]
    for at, column in moments:
        text = _render_clock(at.astimezone(zone), before)
        if column >= len(row) + (1 if row else 0) and column + len(text) <= axis.columns:
            row, before = f"{row.ljust(column)}{text}", at.astimezone(zone)
    text = _render_clock(axis.end.astimezone(zone), before)
    return f"{row}{text.rjust(axis.columns - len(row))}" if len(row) + len(text) < axis.columns else row


def _render_clock(at: datetime, before: datetime) -> str:
    """Return the time, with the date if it is not the day of `before`."""
    return at.strftime("%H:%M" if at.date() == before.date() else "%b %-d, %H:%M")


def _draw_lane(lane: TimelineLane, axis: TimeAxis, signs: _Signs) -> str:
    """Return rests, legs and turns, the later over the earlier; each leg begins with its number."""
    cells = _draw_spans(lane.rests, axis, signs)
    numbers: list[tuple[int, str]] = []
    for leg in lane.legs:
        first, last = _fill(cells, axis, leg.begin, leg.end, signs.leg)
        for turn in leg.turns:
            _fill(cells, axis, turn.begin, turn.end, signs.turn)
        if len(str(leg.number)) <= last - first + 1:
            numbers.append((first, str(leg.number)))
    _mark_gaps(cells, axis, signs)
    for first, number in numbers:
        cells[first : first + len(number)] = number
    return "".join(cells)


def _draw_rests(rests: Sequence[TimelineRest], axis: TimeAxis, signs: _Signs) -> str:
    cells = _draw_spans(rests, axis, signs)
    _mark_gaps(cells, axis, signs)
    return "".join(cells)


def _draw_spans(rests: Sequence[TimelineRest], axis: TimeAxis, signs: _Signs) -> list[str]:
    cells = [" "] * axis.columns
    for rest in rests:
        _fill(cells, axis, rest.begin, rest.end or (rest.until if rest.scope else ""), signs.rest)
    return cells


def _fill(cells: list[str], axis: TimeAxis, begin: str, end: str, sign: str) -> tuple[int, int]:
    """Fill from `begin` to `end`, or to the axis' end for none; return the first and the last column."""
    first = axis.find(datetime.fromisoformat(begin))
    until = axis.find(datetime.fromisoformat(end) if end else axis.end)
    last = max(first, until - 1 if end else until)
    cells[first : last + 1] = sign * (last + 1 - first)
    return first, last


def _mark_gaps(cells: list[str], axis: TimeAxis, signs: _Signs) -> None:
    for column in axis.list_gap_columns():
        cells[column] = signs.gap


def _draw_handoffs(
    handoffs: Sequence[TimelineHandoff], axis: TimeAxis, signs: _Signs
) -> list[tuple[str, str]]:
    """Return rows that mark where handoffs began, with the reason where there is room for it."""
    rows: list[list[str]] = []
    for one in handoffs:
        column = axis.find(datetime.fromisoformat(one.begin))
        reason = cut_columns(plain(one.reason), _WIDEST_LABEL)
        wanted = [
            (column, f"{signs.handoff} {reason}"),
            (column - len(reason) - 1, f"{reason} {signs.handoff}"),
        ]
        if not reason or count_columns(reason) != len(reason):
            wanted = []
        _place(rows, [*wanted, (column, signs.handoff)], axis.columns)
    return [("" if number else _HANDOFF_ROW, "".join(row)) for number, row in enumerate(rows)]


def _place(rows: list[list[str]], wanted: Sequence[tuple[int, str]], columns: int) -> None:
    """Put the first of the texts that fits into the first row it fits in; none if all rows are full."""
    for column, text in wanted:
        if column < 0 or column + len(text) > columns:
            continue
        for row in [*rows, *([[" "] * columns] if len(rows) < _MOST_HANDOFF_ROWS else [])]:
            if not "".join(row[max(0, column - 1) : column + len(text) + 1]).strip():
                row[column : column + len(text)] = text
                if row not in rows:
                    rows.append(row)
                return


def _render_legend(timeline: TimelineTold, drawn: Iterable[str], signs: _Signs) -> str:
    shown = "".join(drawn)
    meanings = (
        (signs.turn, "turn"),
        (signs.leg, "between turns"),
        (signs.rest, "rests"),
        (signs.gap, "time left out"),
        (signs.handoff, "handoff"),
    )
    known = [f"{sign} {meaning}" for sign, meaning in meanings if sign in shown]
    numbers = [leg.number for lane in timeline.lanes for leg in lane.legs]
    return "  ".join([*known, *(["1 first leg"] if 1 in numbers else [])])


def _render_lane(lane: TimelineLane, name: str, now: datetime, zone: tzinfo | None) -> str:
    """Return `ada: 2 turns in 1 leg, 1,200 tokens, $0.10; rested 18:20-19:05 (usage limit)`."""
    turns = f"{render_count(lane.turn_count, 'turn')} in {render_count(lane.leg_count, 'leg')}"
    parts = [", ".join([turns, *list_usage(lane.usage, lane.turn_count)])]
    shown = lane.rests[-_MOST_RESTS:]
    parts += [_render_rest(rest, now, zone) for rest in shown]
    if len(lane.rests) > len(shown):
        parts.append(f"{render_count(len(lane.rests) - len(shown), 'earlier rest')}")
    for window in lane.windows:
        resets = render_moment_text(window.resets_at, now, zone)
        used = f"{name_window(window.name, window.minutes, window.model)} {window.used_percent:g} % used"
        parts.append(f"{used}, resets {resets}" if resets else used)
    return f"{name}: {'; '.join(parts)}"


def _render_rest(rest: TimelineRest, now: datetime, zone: tzinfo | None) -> str:
    begin, end = render_moment_text(rest.begin, now, zone), render_moment_text(rest.end, now, zone)
    why = f"({name_rest(rest.scope, rest.model)})"
    if end:
        return f"rested {begin}-{end} {why}"
    until = parse_moment(rest.until)
    if until is not None and until <= now:
        return f"rested {begin}-{render_moment(until, now, zone)} {why}"
    resets = f"until {render_moment(until, now, zone)}" if until is not None else "with an unknown reset"
    return f"rests since {begin} {resets} {why}"


def list_usage(usage: TimelineUsage, turns: int) -> list[str]:
    """Return tokens and cost in words; that they are unknown is said only if there were `turns`."""
    if usage.tokens is None:
        return ["tokens unknown"] if turns else []
    least = "" if usage.tokens_are_whole else "at least "
    if not usage.cost_usd:
        return [f"{least}{usage.tokens:,} tokens", "cost unknown"]
    cost = render_cost(Decimal(usage.cost_usd), is_whole=usage.cost_is_whole)
    return [f"{least}{usage.tokens:,} tokens", cost]


_SHORT_S = 60
"""The shortest work shown: less would only lengthen the line."""


@dataclass(slots=True)
class Node:
    """A line of the tree, and the nodes below it."""

    text: str
    below: "list[Node]" = field(default_factory=list)


def draw_lineage(
    chain: Lineage, uses: Mapping[str, PacketUse], timeline: TimelineTold | None = None
) -> list[str]:
    """Return the tree's lines: the session, its legs and its handoffs, each below what it continues.

    `uses` are what successors did with their packets; the `timeline` has what each leg used.
    """
    top = Node(f"session {chain.session}")
    legs: dict[str, Node] = {}
    handoffs = {record.id: record for record in chain.registry.records}
    nodes: dict[str, Node] = {}
    worked = {leg.leg: leg for lane in timeline.lanes for leg in lane.legs} if timeline is not None else {}
    for number, leg in enumerate(chain.registry.legs, start=1):
        legs[leg.id] = Node(_render_leg(number, leg, worked.get(leg.id)))
    for record in chain.registry.records:
        nodes[record.id] = Node(_render_handoff(chain, record, uses.get(record.id)))
    for leg in chain.registry.legs:
        nodes.get(leg.handoff, top).below.append(legs[leg.id])
    for record in chain.registry.records:
        _find_place(record, legs, nodes, handoffs, top).below.append(nodes[record.id])
    return draw_tree(top)


def draw_tree(top: Node) -> list[str]:
    """Return the lines of a tree of any depth; without recursion, as a lineage may be of any length."""
    lines, waiting = [top.text], [(child, "", child is top.below[-1]) for child in reversed(top.below)]
    while waiting:
        node, before, is_last = waiting.pop()
        lines.append(f"{before}{'└─ ' if is_last else '├─ '}{node.text}")
        deeper = before + ("   " if is_last else "│  ")
        waiting += [(child, deeper, child is node.below[-1]) for child in reversed(node.below)]
    return lines


def _find_place(
    record: HandoffRecord,
    legs: Mapping[str, Node],
    nodes: Mapping[str, Node],
    handoffs: Mapping[str, HandoffRecord],
    top: Node,
) -> Node:
    """Return the node that the handoff hangs below: the leg it came from, its parent or the top.

    In a damaged journal, too, a handoff never hangs below itself.
    """
    if record.from_leg in legs and record.from_leg not in record.legs:
        return legs[record.from_leg]
    return nodes[record.parent] if record.parent in handoffs and record.parent != record.id else top


def _render_leg(number: int, leg: LegRecord, worked: TimelineLeg | None) -> str:
    now = get_now()
    until = f"-{render_moment(leg.ended_at, now, None)}, {leg.how}" if leg.ended_at else "-, runs"
    back = ", resumed" if leg.resumes else ""
    line = f"leg {number} {leg.agent}{back} ({render_moment(leg.began_at, now, None)}{until})"
    if worked is None:
        return line
    turns = [render_count(worked.turn_count, "turn")] if worked.turn_count else []
    figures = [*turns, *list_usage(worked.usage, worked.turn_count)]
    return f"{line}: {', '.join(figures)}" if figures else line


def _render_handoff(chain: Lineage, record: HandoffRecord, use: PacketUse | None) -> str:
    met, count = count_met(record)
    worked_s = measure_work(chain, record, get_now())
    parts: Sequence[str] = [
        f"{record.status}",
        f"depth {record.depth}",
        *([f"{record.terms.priority} priority"] if record.terms.priority else []),
        *([f"makes up for {record.rolls_back}"] if record.rolls_back else []),
        *([record.note] if record.note else [record.why] if record.why else []),
        *list_askers(build_askers(record)),
        *(
            [f"worked {render_span(int(worked_s * 1000))}"]
            if worked_s is not None and worked_s >= _SHORT_S
            else []
        ),
        *([render_count(use.files_changed, "changed file")] if use is not None and not use.lacks else []),
        *([f"{met} of {count} criteria met"] if count else []),
    ]
    return f"handoff {record.id} → {record.to_agent} ({record.reason.replace('_', ' ')}): {', '.join(parts)}"
