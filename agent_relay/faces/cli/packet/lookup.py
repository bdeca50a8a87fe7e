"""Find the packet that the command line means, and what its journal and its target know of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.domain.errors import UntrustedDataError, WrongUseError
from agent_relay.domain.names import JOURNAL
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.store.packets import list_packets
from agent_relay.store.session_index import find_near_root, read_sessions_at
from agent_relay.system.disk.folders import get_cwd, get_folders

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.domain.documents.packet import ResumePacket

SessionWord = Annotated[
    str, typer.Argument(help="A session's id, or its beginning or end; by default the newest here.")
]
Number = Annotated[int, typer.Option("--number", "-n", min=0, help="Which packet; by default the newest.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@dataclass(frozen=True, slots=True)
class FoundPacket:
    """A packet's number, target and files; `folder` is its session's, `root` holds the `.agent-relay`."""

    root: str
    cwd: str
    folder: str
    sequence: int
    target: str
    document: str

    @property
    def text(self) -> str:
        """The path of the text that the target reads."""
        return f"{self.document.removesuffix('.json')}.md"


def find_packet(session: str, number: int) -> FoundPacket:
    """Return the packet meant; raise WrongUseError if there is none.

    Without `session`, the newest session here that has such a packet is meant; with `number` 0, its newest.
    """
    if session:
        views = [find_session(get_folders(), session)]
    else:
        views = read_sessions_at(find_near_root(get_cwd()), get_folders().sessions)
    for view in views:
        folder = str(view["folder"])
        packets = [row for row in list_packets(folder) if number in {0, row[0]}]
        if packets:
            sequence, target, document = packets[-1]
            root = str(view["root"])
            return FoundPacket(root, str(view["cwd"]) or root, folder, sequence, target, document)
    what = f"packet {number}" if number else "packet"
    raise WrongUseError(f"there is no {what} here yet", hint="A handoff makes one; see: agent-relay status")


def get_renderer(found: FoundPacket) -> "Callable[[ResumePacket], str]":
    """Return the function that renders a packet for the found packet's target.

    Raises UntrustedDataError if no agent here has the target's name, ConfigurationError if its adapter
    cannot be used.
    """
    from agent_relay.agents.catalog import build_renderer, read_catalog

    catalog = read_catalog(get_folders(), root=found.root)
    if found.target not in catalog:
        raise UntrustedDataError(
            f"packet {found.sequence} is for {found.target}, and there is no such agent here",
            hint="See: agent-relay agents --all",
        )
    return build_renderer(catalog.get(found.target), found.folder)


def is_picked_up(found: FoundPacket, packet_id: str) -> bool:
    """Check whether a leg was started on the packet; raise UntrustedDataError for a damaged journal."""
    from agent_relay.store.journal import read_session

    session = read_session(f"{found.folder}/{JOURNAL}")
    return session is not None and any(leg.packet == packet_id for leg in session.legs)


def find_fingerprint(found: FoundPacket, packet_id: str) -> str:
    """Return the packet's fingerprint in the session's journal; empty if the journal does not name it."""
    from agent_relay.domain.events.work import PacketPublished, PacketSaved
    from agent_relay.store.journal import read_events

    events = read_events(f"{found.folder}/{JOURNAL}")
    for event in reversed(events):
        body = event.body
        if isinstance(body, PacketPublished | PacketSaved) and body.packet == packet_id:
            return body.fingerprint
    return ""
