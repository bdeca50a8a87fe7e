"""Draw a session's legs and handoffs as a tree, each below what it continues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_relay.domain.protocol.timeline import TimelineLeg, TimelineTold
from agent_relay.domain.text.plain import render_count
from agent_relay.faces.cli.session.handoffs.chart import list_usage
from agent_relay.faces.cli.session.handoffs.evidence import build_askers, count_met, list_askers
from agent_relay.faces.cli.session.handoffs.records import Lineage, get_now, measure_work
from agent_relay.faces.render.output import render_moment
from agent_relay.session.handoff_history import HandoffRecord, LegRecord
from agent_relay.usage.packet_use import PacketUse
from agent_relay.usage.table_format import render_span

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
    until = f"-{render_moment(leg.ended_at.isoformat())}, {leg.how}" if leg.ended_at else "-, runs"
    back = ", resumed" if leg.resumes else ""
    line = f"leg {number} {leg.agent}{back} ({render_moment(leg.began_at.isoformat())}{until})"
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
