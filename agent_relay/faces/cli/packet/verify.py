"""`agent-relay packet verify`: check that a packet is complete, ours and unedited, and fits the tree."""

from typing import Annotated

import typer

from agent_relay.domain.errors import ExitCode, UntrustedDataError
from agent_relay.faces.cli.packet._facts_score import print_facts_score
from agent_relay.faces.cli.packet.lookup import (
    AsJson,
    FoundPacket,
    Number,
    SessionWord,
    find_fingerprint,
    find_packet,
    is_picked_up,
)
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.packet.freshness import verify_freshness
from agent_relay.store.packets import PUBLISHED, find_edited, read_document, read_packet
from agent_relay.system.git.tree_state import read_tree


def verify(
    session: SessionWord = "",
    *,
    number: Number = 0,
    facts: Annotated[
        str, typer.Option("--facts", help="Instead: score the packet against the facts in this TOML file.")
    ] = "",
    transcript: Annotated[
        str, typer.Option("--transcript", help="With --facts: build the packet from this one.")
    ] = "",
    text: Annotated[str, typer.Option("--text", help="With --facts: score this text file.")] = "",
    target: Annotated[str, typer.Option("--to", help="With --facts: the agent it is built for.")] = "",
    as_json: AsJson = False,
) -> None:
    """Check a packet: whole, of this session, unedited, and written for the tree as it is now.

    Exit status: 0 all of it holds, 1 it was edited or is stale, 65 it cannot be trusted.
    With --facts, scores a packet by what was planted in its transcript: 0 if nothing is missing.
    """
    if facts:
        raise typer.Exit(
            print_facts_score(facts, transcript=transcript, text=text, target=target, as_json=as_json)
        )
    found = find_packet(session, number)
    view = _examine(found)
    stale = view["stale"]
    if as_json:
        print_json(view)
    else:
        print_lines(*_describe(found, view))
    if view["edited"] != "nothing" or stale:
        raise typer.Exit(ExitCode.FAILED)


def _examine(found: FoundPacket) -> dict[str, object]:
    """Return the findings as JSON values; raise UntrustedDataError if the packet is not this session's."""
    packet = read_packet(found.document)
    seal = find_fingerprint(found, packet.packet_id)
    published = read_document(found.document).get(PUBLISHED)
    if not seal:
        raise UntrustedDataError(
            f"packet {found.sequence} is not named in its session's journal",
            hint="It was put there by something else; a handoff writes a new one.",
        )
    if isinstance(published, dict) and published.get("document") != seal:
        raise UntrustedDataError(
            f"packet {found.sequence} is not the one that its session's journal names",
            hint="See what was changed: agent-relay packet diff",
        )
    return {
        "packet_id": packet.packet_id,
        "sequence": found.sequence,
        "target": found.target,
        "document": found.document,
        "text": found.text,
        "edited": find_edited(found.folder, found.sequence, found.target),
        "picked_up": is_picked_up(found, packet.packet_id),
        "stale": list(verify_freshness(packet, read_tree(found.cwd))),
        "redactions": {entry.kind: entry.count for entry in packet.redactions},
        "spared": {entry.kind: entry.count for entry in packet.spared},
    }


def _describe(found: FoundPacket, view: dict[str, object]) -> list[str]:
    edited, stale = view["edited"], view["stale"]
    lines = [
        f"packet {found.sequence} for {found.target}: complete, and from this session",
        "not edited" if edited == "nothing" else f"edited since it was published: {edited}",
        "picked up" if view["picked_up"] else "not picked up yet",
    ]
    notes = stale if isinstance(stale, list) else []
    return (
        [*lines, *(f"stale: {note}" for note in notes)]
        if notes
        else [*lines, "the working tree is as it describes"]
    )
