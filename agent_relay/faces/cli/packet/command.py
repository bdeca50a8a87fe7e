"""`agent-relay packet`: show the packets of a session, or build one from any transcript."""

import sys
from typing import Annotated

import typer

from agent_relay.domain.documents.packet import Redaction, ResumePacket
from agent_relay.faces.cli.packet.lookup import AsJson, Number, SessionWord, find_packet, get_renderer
from agent_relay.faces.cli.typer_runner import Functions
from agent_relay.faces.render.output import print_contents, print_json, print_lines
from agent_relay.store.packets import find_edited, read_body, read_delivery_text, read_packet


def show(session: SessionWord = "", *, number: Number = 0, as_json: AsJson = False) -> None:
    """Print the packet as its target reads it, with your edits; with --json, the document.

    Below the text: what was removed as a secret, and what was edited.
    """
    found = find_packet(session, number)
    packet = read_packet(found.document)
    if as_json:
        print_json(packet.model_dump(mode="json", by_alias=True, exclude_none=True))
        return
    edited = find_edited(found.folder, found.sequence, found.target)
    if edited == "nothing":
        text = read_body(found.folder, found.sequence, found.target)
    else:
        render = get_renderer(found)
        text = read_delivery_text(found.folder, found.sequence, found.target, render=render).text
    print_contents(*text.splitlines(), *_list_remarks(packet, edited))


def path(session: SessionWord = "", *, number: Number = 0, as_json: AsJson = False) -> None:
    """Print the path of the packet's text; its successor reads your edits until it is picked up."""
    found = find_packet(session, number)
    if as_json:
        print_json({"text": found.text, "document": found.document})
    else:
        print_lines(found.text)


def schema(*, as_json: AsJson = False) -> None:  # noqa: ARG001 - the schema is JSON in any case
    """Print the JSON Schema of resume packets."""
    print_json(ResumePacket.model_json_schema(by_alias=True))


def build(
    *,
    agent: Annotated[str, typer.Option("--agent", help="The agent that wrote it.")],
    transcript: Annotated[str, typer.Option("--transcript", help="Its file, or a folder that holds it.")],
    target: Annotated[str, typer.Option("--to", help="The agent that will read the packet.")],
    repo: Annotated[
        str, typer.Option("--repo", help="The working tree; by default the transcript's own.")
    ] = "",
    focus: Annotated[str, typer.Option("--focus", help="What to look at first.")] = "",
    as_json: AsJson = False,
) -> None:
    """Build a packet from a native transcript, offline, without a session; nothing is written."""
    from agent_relay.faces.cli.packet.transfer import build_offline

    packet, text = build_offline(agent, transcript, target, repo=repo, focus=focus)
    if as_json:
        print_json(packet.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def _list_remarks(packet: ResumePacket, edited: str) -> list[str]:
    remarks = [f"edited since it was published: {edited}"] if edited != "nothing" else []
    if packet.redactions:
        remarks.append(f"secrets removed: {count_kinds(packet.redactions)}")
    if packet.spared:
        remarks.append(f"spared by your allow-list: {count_kinds(packet.spared)}")
    return ["", *remarks] if remarks else []


def count_kinds(entries: tuple[Redaction, ...]) -> str:
    """Return the kinds with their counts, for people."""
    return ", ".join(f"{entry.count} {entry.kind}" for entry in entries)


_HERE = "agent_relay.faces.cli.packet"
PACKET: Functions = {
    "show": show,
    "path": path,
    "diff": f"{_HERE}.edit:diff",
    "edit": f"{_HERE}.edit:edit",
    "verify": f"{_HERE}.verify:verify",
    "export": f"{_HERE}.transfer:export",
    "import": f"{_HERE}.transfer:import_file",
    "schema": schema,
    "build": build,
}
"""By sub-command."""
