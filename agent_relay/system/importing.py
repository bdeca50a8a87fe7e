"""A session made of a packet from elsewhere: nothing of it ran here, but its successor can."""

import json
import os
from dataclasses import dataclass
from datetime import datetime

from agent_relay.domain.event import (
    Body,
    Event,
    LegEnded,
    LegStarting,
    PacketSaved,
    SessionCreated,
    SessionEnded,
)
from agent_relay.domain.event_json import render_event
from agent_relay.domain.packet import ResumePacket
from agent_relay.system.files import write_atomic
from agent_relay.system.folders import Folders
from agent_relay.system.project import open_project, session_folder
from agent_relay.system.session_index import write_entry
from agent_relay.system.store import Published, publish_packet

IMPORTED = "imported"
"""Stands in the journal where the agent of the first leg would: no adapter has this name."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an imported session belongs: `root` holds its `.agent-relay`, agents work in `cwd`."""

    root: str
    cwd: str
    roster: tuple[str, ...]


def import_packet(
    folders: Folders, place: Place, packet: ResumePacket, text: str, *, leg: str, at: datetime
) -> tuple[str, Published]:
    """The new session's folder and its packet, which waits for the successor.

    The journal is written last and at once: a crash before it leaves a folder nobody takes for a session.
    Raises RelayError where the disk refuses.
    """
    folder = session_folder(open_project(place.root), packet.session_id)
    done = publish_packet(folder, packet, text)
    write_entry(folders.sessions, packet.session_id, root=place.root, cwd=place.cwd)
    bodies: tuple[Body, ...] = (
        SessionCreated(packet.session_id, place.root, place.cwd, place.roster, packet.task or ""),
        LegStarting(leg, IMPORTED, 1),
        LegEnded(leg, "exited", 0),
        PacketSaved(
            done.packet_id,
            done.sequence,
            packet.target_agent,
            done.json_path,
            done.text_path,
            done.fingerprint,
        ),
        SessionEnded(f"imported from {packet.previous_agent}"),
    )
    lines = [
        json.dumps(render_event(Event(number, at, 0 if number == 1 else 1, body)), separators=(",", ":"))
        for number, body in enumerate(bodies, 1)
    ]
    write_atomic(os.path.join(folder, "journal.jsonl"), "".join(f"{line}\n" for line in lines).encode())
    return folder, done
