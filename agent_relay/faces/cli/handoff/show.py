"""One handoff in full: what was transferred, what was expected, what became of it, how it was checked."""

import os
from typing import TYPE_CHECKING

from agent_relay.domain.errors import RelayError
from agent_relay.faces.cli.handoff.records import Chain, build_row, get_now
from agent_relay.faces.cli.printing import print_lines, render_moment
from agent_relay.logic.registry import Record

if TYPE_CHECKING:
    from agent_relay.domain.packet import ResumePacket

_COUNTED = (
    "constraints",
    "decisions",
    "attempts",
    "blockers",
    "plan",
    "touched_files",
    "validation_runs",
    "recent_turns",
)
_PATH_LENGTH = 255


def build_full(chain: Chain, record: Record) -> dict[str, object]:
    """`build_row`, and transferred, deliverables, verification, children and trail."""
    packet, problem = _read(chain, record)
    children = [child.id for child in chain.registry.records if child.parent == record.id]
    return {
        **build_row(chain, record, get_now()),
        "focus": record.focus,
        "skipped": list(record.skipped),
        "model": record.model,
        "transferred": _tell_transferred(chain, record, packet, problem),
        "deliverables": [_tell_deliverable(chain.root, text) for text in record.terms.deliverables],
        "verification": _verify(chain, record, packet),
        "children": children,
        "trail": [
            {"at": moment.at.isoformat(), "event": moment.event, "text": moment.text}
            for moment in record.trail
        ],
    }


def print_full(view: dict[str, object]) -> None:
    """The view for people, a line a fact."""
    expectations, rollback = view["expectations"], view["rollback"]
    transferred, verification, trail = view["transferred"], view["verification"], view["trail"]
    assert isinstance(expectations, dict)  # noqa: S101 - built above
    assert isinstance(rollback, dict)  # noqa: S101 - built above
    assert isinstance(transferred, dict)  # noqa: S101 - built above
    assert isinstance(verification, dict)  # noqa: S101 - built above
    assert isinstance(trail, list)  # noqa: S101 - built above
    took = f"{view['duration_s']} s"
    lines = [
        f"handoff {view['handoff']} of session {view['session']}",
        f"{view['from']} → {view['to']} ({str(view['reason']).replace('_', ' ')}): {view['status']}, {took}",
        *([f"why: {view['why']}"] if view["why"] else []),
        *([f"note: {view['note']}"] if view["note"] else []),
        *([f"parent: {view['parent']}, depth {view['depth']}"] if view["parent"] else []),
        *([f"priority: {view['priority']}"] if view["priority"] else []),
        *[f"{name.replace('_', ' ')}: {'; '.join(texts)}" for name, texts in expectations.items() if texts],
        *([f"rollback: {rollback['agent']}"] if rollback["agent"] else []),
        *[f"question: {text}" for text in rollback["questions"]],
        *_list_deliverables(view["deliverables"]),
        f"packet: {transferred['path'] or 'none yet'}",
        *[f"  {name.replace('_', ' ')}: {count}" for name, count in transferred["counts"].items() if count],
        *[f"{name.replace('_', ' ')}: {text}" for name, text in verification.items() if text],
        *[
            f"  {render_moment(moment['at'])}  {moment['event']}  {moment['text']}".rstrip()
            for moment in trail
        ],
    ]
    print_lines(*lines)


def _list_deliverables(found: object) -> list[str]:
    assert isinstance(found, list)  # noqa: S101 - built above
    words = {True: "there", False: "missing"}
    return [
        f"deliverable {one['text']}: {words[one['exists']]}" for one in found if one["exists"] is not None
    ]


def _read(chain: Chain, record: Record) -> "tuple[ResumePacket | None, str]":
    if not record.json_path:
        return None, ""
    from agent_relay.system.store_reading import read_packet

    try:
        return read_packet(f"{chain.folder}/{record.json_path}"), ""
    except (RelayError, OSError) as error:
        return None, error.sentence if isinstance(error, RelayError) else "the packet cannot be read"


def _tell_transferred(
    chain: Chain, record: Record, packet: "ResumePacket | None", problem: str
) -> dict[str, object]:
    text = f"{chain.folder}/{record.text_path}" if record.text_path else ""
    return {
        "packet": record.packet,
        "sequence": record.sequence,
        "path": text,
        "bytes": os.path.getsize(text) if text and os.path.exists(text) else 0,
        "problem": problem,
        "task": bool(packet and packet.task),
        "unprocessed_prompt": bool(packet and packet.unprocessed_prompt),
        "counts": {name: len(getattr(packet, name)) if packet else 0 for name in _COUNTED},
    }


def _tell_deliverable(root: str, text: str) -> dict[str, object]:
    """A deliverable that reads like a path below the root is looked for; `exists` is `None` for any other."""
    is_path = len(text) <= _PATH_LENGTH and not any(sign in text for sign in " \n\0") and ".." not in text
    is_path = is_path and not os.path.isabs(text) and ("/" in text or "." in text[1:])
    return {"text": text, "exists": os.path.exists(os.path.join(root, text)) if is_path else None}


def _verify(chain: Chain, record: Record, packet: "ResumePacket | None") -> dict[str, object]:
    """The checks as they stood at the handoff and at the next one, and what changed in the tree since."""
    after = next((one for one in chain.registry.records if one.parent == record.id and one.json_path), None)
    later = _read(chain, after)[0] if after is not None else None
    stale: tuple[str, ...] = ()
    if packet is not None and record.is_open:
        from agent_relay.logic.freshness import verify_freshness
        from agent_relay.system.git import read_tree

        try:
            stale = tuple(verify_freshness(packet, read_tree(chain.root)))
        except RelayError:
            stale = ()
    return {
        "checks_before": _tell_checks(packet),
        "checks_after": _tell_checks(later),
        "changed_since": "; ".join(stale),
    }


def _tell_checks(packet: "ResumePacket | None") -> str:
    state = packet.validation_state.model_dump(exclude_none=True) if packet is not None else {}
    return ", ".join(f"{kind} {verdict}" for kind, verdict in state.items())
