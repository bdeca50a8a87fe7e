"""`agent-relay packet`: what a successor is told, from a session's folder or built from any transcript."""

import os
import sys
from typing import Annotated

import typer

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.printing import print_json, print_lines
from agent_relay.faces.cli.sessions import find_session
from agent_relay.faces.cli.typed import Function, run_group
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import find_near_root, read_all_sessions, read_sessions_at
from agent_relay.system.store_reading import list_packets, read_packet

Session = Annotated[str, typer.Argument(help="A session's id, or one end of it; the newest here without.")]
Number = Annotated[int, typer.Option("--number", "-n", min=0, help="Which packet; the newest without.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def run(words: list[str]) -> int:
    """The exit status of `agent-relay packet`."""
    return run_group(FUNCTIONS, words, name="packet", about="What a successor is told.")


def show(session: Session = "", *, number: Number = 0, as_json: AsJson = False) -> None:
    """Print the packet as its target reads it; with --json, the document."""
    document, text = _find(session, number)
    if as_json:
        print_json(read_packet(document).model_dump(mode="json", by_alias=True, exclude_none=True))
        return
    with open(text, encoding="utf-8", errors="replace") as stream:
        print_lines(*stream.read().splitlines())


def path(session: Session = "", *, number: Number = 0, as_json: AsJson = False) -> None:
    """Print where the packet's text stands; edit it before it is picked up, and the successor reads that."""
    document, text = _find(session, number)
    if as_json:
        print_json({"text": text, "document": document})
    else:
        print_lines(text)


def schema() -> None:
    """Print the JSON Schema of resume packets."""
    from agent_relay.domain.packet import ResumePacket

    print_json(ResumePacket.model_json_schema(by_alias=True))


def build(
    *,
    agent: Annotated[str, typer.Option("--agent", help="Whose transcript it is.")],
    transcript: Annotated[str, typer.Option("--transcript", help="Its file, or a folder that holds it.")],
    target: Annotated[str, typer.Option("--to", help="Who is to read the packet.")],
    repo: Annotated[str, typer.Option("--repo", help="The working tree; the transcript's own without.")] = "",
    focus: Annotated[str, typer.Option("--focus", help="What to look at first.")] = "",
    as_json: AsJson = False,
) -> None:
    """Build a packet from a native transcript, offline, without a session; nothing is written."""
    from agent_relay.faces.cli.offline import build_offline

    packet, text = build_offline(agent, transcript, target, repo=repo, focus=focus)
    if as_json:
        print_json(packet.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def _find(session: str, number: int) -> tuple[str, str]:
    """The paths of the packet's document and text. Raises WrongUseError where there is none."""
    if session:
        view = find_session(session, read_all_sessions(get_folders().sessions))
        candidates = [str(view["folder"])]
    else:
        here = read_sessions_at(find_near_root(os.getcwd()))
        candidates = [str(view["folder"]) for view in here]
    for folder in candidates:
        packets = [row for row in list_packets(folder) if number in {0, row[0]}]
        if packets:
            document = packets[-1][2]
            return document, f"{document.removesuffix('.json')}.md"
    what = f"packet {number}" if number else "packet"
    raise WrongUseError(f"there is no {what} here yet", hint="A handoff makes one; see: agent-relay status")


FUNCTIONS: dict[str, Function] = {"show": show, "path": path, "schema": schema, "build": build}
"""By sub-command."""
