"""Publishes packets so that nobody reads half of one, and reads them back as their user left them."""

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.packet import ResumePacket
from agent_relay.logic.packet_json import (
    fingerprint,
    parse_document,
    parse_packet,
    render_document,
    render_json,
)
from agent_relay.logic.plain import clean_text
from agent_relay.system.files import cannot_write, read_bounded, sync_folder, write_all

LIMIT_BYTES = 16 << 20
_LOCK_WAIT_S = 5.0
_TARGET = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NUMBERED = re.compile(r"([0-9]{4,9})-([a-z][a-z0-9-]{0,31})\.json")
_TEMPORARY = ".tmp-publish-"
# The document carries the fingerprints of what was published, so that an edit is seen without a journal.
_PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Published:
    """A visible packet. Paths are relative to the session's folder; `again`: it was there before."""

    packet_id: str
    sequence: int
    json_path: str
    text_path: str
    link_path: str
    fingerprint: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the successor is given, and what the user edited since publishing."""

    text: str
    edited: Literal["nothing", "text", "document", "both"] = "nothing"


def publish_packet(folder: str, packet: ResumePacket, text: str) -> Published:
    """The packet and its `text` are visible in session folder `folder`, whole and durable.

    Publishing the same packet again changes nothing, user's edits included; after a crash it finishes what
    was begun. Raises RelayError where its number already belongs to another packet or the disk refuses;
    every packet published before is then intact.
    """
    target, resume = _check_target(packet.target_agent), os.path.join(folder, "resume")
    stem = f"{packet.sequence:04}-{target}"
    body = text.encode("utf-8", "backslashreplace")
    document = render_document(packet)
    document.pop(_PUBLISHED, None)
    parse_packet(document)  # what could not be read back must not become visible
    seal = fingerprint(document)
    document[_PUBLISHED] = {"document": seal, "text": sha256(body).hexdigest()}
    names = (f"{stem}.json", f"{stem}.md", f"{target}.md")
    try:
        _make_private(resume)
        with _locked(resume) as alone:
            there = _find_published(resume, packet, names[0])
            if alone:
                _sweep(resume)
            wanted = _list_missing(resume, packet.sequence, names, new=there is None)
            whole = render_json(document).encode("utf-8", "backslashreplace")
            contents = {names[0]: whole, names[1]: body, names[2]: None}
            _place(resume, {name: contents[name] for name in wanted}, names)
    except OSError as problem:
        raise cannot_write(resume, problem) from problem
    return Published(
        packet.packet_id,
        packet.sequence,
        json_path=os.path.join("resume", names[0]),
        text_path=os.path.join("resume", names[1]),
        link_path=os.path.join("resume", names[2]),
        fingerprint=there or seal,
        again=there is not None,
    )


def read_packet(path: str) -> ResumePacket:
    """The packet at `path`. Raises UntrustedDataError where it is none, or of a newer version than ours."""
    return parse_packet(_read_document(path), name=path)


def read_delivery_text(
    folder: str, sequence: int, target: str, *, render: Callable[[ResumePacket], str]
) -> Delivery:
    """What is delivered of packet `sequence`: its text as the user left it, free of control characters.

    Where only the document was edited, `render` makes the text anew from it; where both were, the text
    counts. Raises UntrustedDataError where the packet is missing or cannot be trusted.
    """
    stem = os.path.join(folder, "resume", f"{sequence:04}-{_check_target(target)}")
    document = _read_document(f"{stem}.json")
    published = document.pop(_PUBLISHED, None)
    seals = published if isinstance(published, dict) else {}
    packet = parse_packet(document, name=f"{stem}.json")
    document_edited = fingerprint(document) != seals.get("document")
    try:
        body = read_bounded(f"{stem}.md", limit_bytes=LIMIT_BYTES)
    except FileNotFoundError:
        return Delivery(clean_text(render(packet)), "document" if document_edited else "nothing")
    if sha256(body).hexdigest() != seals.get("text"):
        edited: Literal["both", "text"] = "both" if document_edited and "text" in seals else "text"
        return Delivery(clean_text(body.decode("utf-8", "replace")), edited)
    if document_edited:
        return Delivery(clean_text(render(packet)), "document")
    return Delivery(clean_text(body.decode("utf-8", "replace")))


def list_packets(folder: str) -> tuple[tuple[int, str, str], ...]:
    """The published packets of session folder `folder` in order: (sequence, target, absolute JSON path)."""
    try:
        return tuple(_list_rows(os.path.join(folder, "resume")))
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise RelayError(f"cannot read the packets in {folder}: {problem.strerror}") from problem


def _list_rows(resume: str) -> list[tuple[int, str, str]]:
    found = (_NUMBERED.fullmatch(name) for name in os.listdir(resume))
    return sorted((int(match[1]), match[2], os.path.join(resume, match[0])) for match in found if match)


def _check_target(target: str) -> str:
    if not _TARGET.fullmatch(target):
        raise UntrustedDataError("a packet's target is not the name of an agent")
    return target


def _read_document(path: str) -> dict[str, object]:
    try:
        return parse_document(read_bounded(path, limit_bytes=LIMIT_BYTES), name=path)
    except FileNotFoundError:
        raise UntrustedDataError(f"there is no packet at {path}") from None


def _make_private(resume: str) -> None:
    try:
        os.mkdir(resume, 0o700)
    except FileExistsError:
        return
    sync_folder(os.path.dirname(resume))


@contextlib.contextmanager
def _locked(resume: str) -> Iterator[bool]:
    """Whether this process is the only publisher in `resume`; false where the file system has no locks.

    Raises RelayError where another one holds the folder for too long.
    """
    handle = os.open(resume, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield _lock(handle, resume)
    finally:
        os.close(handle)


def _lock(handle: int, resume: str) -> bool:
    until = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise RelayError(f"another process is publishing in {resume}", hint="Try again.") from None
            time.sleep(0.01)
        except OSError:
            return False
        else:
            return True


def _find_published(resume: str, packet: ResumePacket, name: str) -> str | None:
    """The fingerprint under which this very packet was published, or `None` where it was not.

    Raises UntrustedDataError where its number is another packet's.
    """
    for number, _, path in _list_rows(resume):
        if number != packet.sequence:
            continue
        document = _read_document(path)
        if os.path.basename(path) != name or document.get("packet_id") != packet.packet_id:
            raise UntrustedDataError(f"packet number {packet.sequence} is taken already: {path}")
        published = document.pop(_PUBLISHED, None)
        seal = published.get("document") if isinstance(published, dict) else None
        return seal if isinstance(seal, str) else fingerprint(document)
    return None


def _list_missing(resume: str, sequence: int, names: tuple[str, str, str], *, new: bool) -> list[str]:
    """Which of the packet's names are still to be made, in the order that shows no half packet."""
    document, text, link = names
    missing = [text] if new or not os.path.lexists(os.path.join(resume, text)) else []
    missing += [document] if new else []
    target = link.removesuffix(".md")
    later = any(row[0] > sequence and row[1] == target for row in _list_rows(resume))
    path = os.path.join(resume, link)
    if not later and (new or not os.path.islink(path) or os.readlink(path) != text):
        missing.append(link)
    return missing


def _sweep(resume: str) -> None:
    """Leftovers of attempts that crashed are gone; nobody else writes here while we hold the lock."""
    for name in os.listdir(resume):
        if name.startswith(_TEMPORARY):
            os.unlink(os.path.join(resume, name))


def _place(resume: str, contents: dict[str, bytes | None], names: tuple[str, str, str]) -> None:
    """The `contents` stand under their names, in their order; `None` is the link to the text.

    All are written before the first becomes visible. Raises OSError, and then at most the text is there.
    """
    document, text, _ = names
    fresh = document in contents and not os.path.lexists(os.path.join(resume, text))
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
        for path in [*(mark + name for name in contents), *([os.path.join(resume, text)] if fresh else [])]:
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
    """`path` leads to `name`. A file system without symlinks gets none: the numbered names are the truth."""
    try:
        os.symlink(name, path)
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
