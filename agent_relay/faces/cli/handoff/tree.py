"""A session's chain drawn as a tree: legs, the handoffs from them, and the legs those brought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent_relay.faces.cli.handoff.records import Chain
from agent_relay.faces.cli.printing import render_moment
from agent_relay.logic.registry import LegRecord, Record


@dataclass(slots=True)
class Node:
    """One line of the tree, and what hangs below it."""

    text: str
    below: "list[Node]" = field(default_factory=list)


def draw_chain(chain: Chain) -> list[str]:
    """The tree's lines: the session, below it its legs and handoffs, each under what it goes on from."""
    top = Node(f"session {chain.session}")
    legs: dict[str, Node] = {}
    handoffs = {record.id: record for record in chain.registry.records}
    nodes: dict[str, Node] = {}
    for number, leg in enumerate(chain.registry.legs, start=1):
        legs[leg.id] = Node(_tell_leg(number, leg))
    for record in chain.registry.records:
        nodes[record.id] = Node(_tell_handoff(record))
    for leg in chain.registry.legs:
        nodes.get(leg.handoff, top).below.append(legs[leg.id])
    for record in chain.registry.records:
        _find_place(record, legs, nodes, handoffs, top).below.append(nodes[record.id])
    return draw(top)


def draw(top: Node) -> list[str]:
    """The lines of a tree of any depth, without recursion: a chain may be as long as it likes."""
    lines, waiting = [top.text], [(child, "", child is top.below[-1]) for child in reversed(top.below)]
    while waiting:
        node, before, is_last = waiting.pop()
        lines.append(f"{before}{'└─ ' if is_last else '├─ '}{node.text}")
        deeper = before + ("   " if is_last else "│  ")
        waiting += [(child, deeper, child is node.below[-1]) for child in reversed(node.below)]
    return lines


def _find_place(
    record: Record,
    legs: Mapping[str, Node],
    nodes: Mapping[str, Node],
    handoffs: Mapping[str, Record],
    top: Node,
) -> Node:
    """What the handoff hangs below: the leg it came from, but never itself in a damaged journal."""
    if record.from_leg in legs and record.from_leg not in record.legs:
        return legs[record.from_leg]
    return nodes[record.parent] if record.parent in handoffs and record.parent != record.id else top


def _tell_leg(number: int, leg: LegRecord) -> str:
    until = f"-{render_moment(leg.ended_at.isoformat())}, {leg.how}" if leg.ended_at else "-, runs"
    back = ", resumed" if leg.resumes else ""
    return f"leg {number} {leg.agent}{back} ({render_moment(leg.began_at.isoformat())}{until})"


def _tell_handoff(record: Record) -> str:
    said: Sequence[str] = [
        f"{record.status}",
        f"depth {record.depth}",
        *([f"{record.terms.priority} priority"] if record.terms.priority else []),
        *([f"makes up for {record.rolls_back}"] if record.rolls_back else []),
        *([record.note] if record.note else [record.why] if record.why else []),
    ]
    return f"handoff {record.id} → {record.to_agent} ({record.reason.replace('_', ' ')}): {', '.join(said)}"
