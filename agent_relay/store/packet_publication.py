"""Publish packets so that a reader never sees half of one, and make sessions of packets from elsewhere.

No agent has run in an imported session, but its successor can.
"""

import contextlib
import errno
import os
from datetime import datetime
from hashlib import sha256

import msgspec

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.packet_json import fingerprint, parse_packet, render_document, render_json
from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events.session import Body, Event, LegEnded, LegStarting, SessionCreated, SessionEnded
from agent_relay.domain.events.work import PacketSaved
from agent_relay.domain.names import IMPORTED, RESUME, get_journal_path, get_resume_folder
from agent_relay.store import packets
from agent_relay.store.journal import render_line
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.system.disk.files import cannot_write, sync_folder, write_all, write_atomic
from agent_relay.system.disk.folders import Folders

_LEFT_OVER = ".tmp-"
_TEMPORARY = f"{_LEFT_OVER}publish-"
_Names = tuple[str, str, str, str]


class PublishedPacket(msgspec.Struct, frozen=True):
    """A visible packet. Paths are relative to the session's folder; `again` if it was published before."""

    packet_id: str
    sequence: int
    json_path: str
    text_path: str
    fingerprint: str
    again: bool = False


def publish_packet(folder: str, packet: ResumePacket, text: str) -> PublishedPacket:
    """Publish the packet and its `text` in session folder `folder`, whole and durable.

    Publishing the same packet again changes nothing, user's edits included; after a crash it finishes what
    was begun. Raises RelayError if its number already belongs to another packet or the disk refuses; every
    packet published before is then intact.
    """
    target, resume = packets.check_target(packet.target_agent), get_resume_folder(folder)
    stem = packets.name_stem(packet.sequence, target)
    body = text.encode("utf-8", "backslashreplace")
    document = render_document(packet)
    document.pop(packets.PUBLISHED, None)
    parse_packet(document)  # what could not be read back must not become visible
    seal = fingerprint(document)
    original = render_json({"document": document, "text": body.decode()})
    document = {**document, packets.PUBLISHED: {"document": seal, "text": sha256(body).hexdigest()}}
    names = (f"{stem}.json", f"{stem}.md", f"{target}.md", packets.name_original(stem))
    try:
        _make_private(resume)
        with packets.locked(resume) as alone:
            there = _find_published(resume, packet, names[0])
            if alone:
                _sweep(resume)
            wanted = _list_missing(resume, packet.sequence, names, new=there is None)
            whole = render_json(document).encode("utf-8", "backslashreplace")
            kept = original.encode("utf-8", "backslashreplace")
            contents = {names[0]: whole, names[1]: body, names[2]: None, names[3]: kept}
            _place(resume, {name: contents[name] for name in wanted}, names)
    except OSError as problem:
        raise cannot_write(resume, problem) from problem
    return PublishedPacket(
        packet.packet_id,
        packet.sequence,
        json_path=f"{RESUME}/{names[0]}",
        text_path=f"{RESUME}/{names[1]}",
        fingerprint=there or seal,
        again=there is not None,
    )


def _make_private(resume: str) -> None:
    try:
        os.mkdir(resume, 0o700)
    except FileExistsError:
        return
    sync_folder(os.path.dirname(resume))


def _find_published(resume: str, packet: ResumePacket, name: str) -> str | None:
    """Return the fingerprint under which this very packet was published; `None` if it was not.

    Raises UntrustedDataError if its number is another packet's.
    """
    for number, _, path in packets.list_rows(resume):
        if number != packet.sequence:
            continue
        document = packets.read_document(path)
        if os.path.basename(path) != name or document.get("packet_id") != packet.packet_id:
            raise UntrustedDataError(f"packet number {packet.sequence} is taken already: {path}")
        published = document.pop(packets.PUBLISHED, None)
        seal = published.get("document") if isinstance(published, dict) else None
        return seal if isinstance(seal, str) else fingerprint(document)
    return None


def _list_missing(resume: str, sequence: int, names: _Names, *, new: bool) -> list[str]:
    """Return the packet's missing files, in the order in which no half packet becomes visible."""
    document, text, link, original = names
    missing = [text] if new or not os.path.lexists(os.path.join(resume, text)) else []
    missing += [original, document] if new else []
    target = link.removesuffix(".md")
    later = any(row[0] > sequence and row[1] == target for row in packets.list_rows(resume))
    path = os.path.join(resume, link)
    if not later and (new or not os.path.islink(path) or os.readlink(path) != text):
        missing.append(link)
    return missing


def _sweep(resume: str) -> None:
    """Remove what crashed publications and edits left; under the lock no other process writes here."""
    for name in os.listdir(resume):
        if name.startswith(_LEFT_OVER):
            os.unlink(os.path.join(resume, name))


def _place(resume: str, contents: dict[str, bytes | None], names: _Names) -> None:
    """Write the `contents` and rename them to their names, in their order; `None` is the link to the text.

    All are written before the first becomes visible. Raises OSError; without the document there is no
    packet.
    """
    document, text, _, original = names
    fresh = document in contents and not os.path.lexists(os.path.join(resume, text))
    left = [os.path.join(resume, name) for name in (text, original)]
    mark = os.path.join(resume, f"{_TEMPORARY}{os.urandom(6).hex()}-")
    try:
        for name, data in contents.items():
            if data is None:
                _link(text, mark + name)
            else:
                _write(mark + name, data)
        for name, data in contents.items():
            if data is None and not os.path.lexists(mark + name):
                continue
            os.rename(mark + name, os.path.join(resume, name))
            fresh = fresh and name != document
        sync_folder(resume)
    except OSError:
        for path in [*(mark + name for name in contents), *(left if fresh else [])]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        raise


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def _link(name: str, path: str) -> None:
    """Make the symlink `path` to `name` if the file system has symlinks: the numbered names are the truth."""
    try:
        os.symlink(name, path)
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise


class ImportPlace(msgspec.Struct, frozen=True):
    """Place of an imported session: `root` holds its `.agent-relay`, agents work in `cwd`."""

    root: str
    cwd: str
    roster: tuple[str, ...]


def import_packet(
    folders: Folders, place: ImportPlace, packet: ResumePacket, text: str, *, leg: str, at: datetime
) -> tuple[str, PublishedPacket]:
    """Make a session of the packet; return its folder and the packet, which waits for the successor.

    The journal is written last and at once: a crash before it leaves a folder that is no session. Raises
    RelayError if the disk refuses.
    """
    folder = make_session_folder(place.root, packet.session_id)
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
        render_line(Event(number, at, 0 if number == 1 else 1, body)) for number, body in enumerate(bodies, 1)
    ]
    write_atomic(get_journal_path(place.root, packet.session_id), b"".join(lines))
    return folder, done
