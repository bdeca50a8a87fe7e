"""Read packets as published and as edited; keep an agent's handoff document until a packet includes it."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import asdict

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.packet_json import fingerprint, parse_document, parse_packet
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.names import get_resume_folder
from agent_relay.domain.text.plain import clean_text
from agent_relay.packet.edits import absorb_edit, merge_texts
from agent_relay.system.disk.files import cannot_write, read_bounded, read_object, write_atomic
from agent_relay.system.disk.locks import lock_folder

LIMIT_BYTES = 16 << 20
PUBLISHED = "published"
"""The document's field with the fingerprints of what was published, so that edits show without a journal."""
_TARGET = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NUMBERED = re.compile(r"([0-9]{4,9})-([a-z][a-z0-9-]{0,31})\.json")

Edited = Literal["nothing", "text", "document", "both"]


class DeliveryText(msgspec.Struct, frozen=True):
    """Text delivered to the successor, and what the user edited since publishing."""

    text: str
    edited: Edited = "nothing"


class Original(msgspec.Struct, frozen=True):
    """A packet as it was published: its document without relay's fingerprints, and its text."""

    document: dict[str, object]
    text: str


class _Now(msgspec.Struct, frozen=True):
    """The files of a packet as they are now; `body` is `None` if the text was deleted."""

    document: dict[str, object]
    body: bytes | None
    original: Original | None
    edited: Edited

    @property
    def text(self) -> str:
        """The text, raw; empty if it was deleted."""
        return (self.body or b"").decode("utf-8", "replace")

    @property
    def is_text_edited(self) -> bool:
        """True if the text is not the published one."""
        return self.edited in ("text", "both")


def read_packet(path: str) -> ResumePacket:
    """Read the packet at `path`. Raise UntrustedDataError if it is none, or of a newer version than ours."""
    return parse_packet(read_document(path), name=path)


def read_delivery_text(
    folder: str, sequence: int, target: str, *, render: Callable[[ResumePacket], str]
) -> DeliveryText:
    """Return what is delivered of packet `sequence`: its text as edited, without control characters.

    If only the document was edited, `render` makes the text anew from it; if both were, what either deleted
    is left out. An edit by `replace_file` is read or refused, never lost. Raises UntrustedDataError if the
    packet is missing or cannot be trusted.
    """
    resume, stem = get_resume_folder(folder), name_stem(sequence, target)
    try:
        with locked(resume):
            now = _read_now(resume, stem)
    except FileNotFoundError:
        raise UntrustedDataError(f"there is no packet at {resume}/{stem}.json") from None
    except OSError as problem:
        raise RelayError(f"cannot read the packets in {resume}: {problem.strerror}") from problem
    packet = parse_packet(now.document, name=f"{resume}/{stem}.json")
    if now.body is None:
        return DeliveryText(clean_text(render(packet)), now.edited)
    text = now.text
    if now.edited == "document":
        text = render(packet)
    elif now.edited == "both" and now.original is not None:
        before = parse_packet(now.original.document)
        if render(before) == now.original.text:
            text = merge_texts(now.original.text, text, render(packet))
    return DeliveryText(clean_text(text), now.edited)


def find_edited(folder: str, sequence: int, target: str) -> Edited:
    """Return which of the packet's two files was edited. Raise UntrustedDataError or RelayError."""
    return _read_files(folder, sequence, target).edited


def read_original(folder: str, sequence: int, target: str) -> Original | None:
    """Return the packet as published; `None` if that was not kept or its fingerprints do not match."""
    return _read_files(folder, sequence, target).original


def read_kept(folder: str, sequence: int, target: str) -> Original | None:
    """Return what `read_original` does, whatever has become of the packet itself since."""
    name = name_original(name_stem(sequence, target))
    return _read_original(f"{get_resume_folder(folder)}/{name}")[0]


def read_body(folder: str, sequence: int, target: str) -> str:
    """Return the packet's text as it is now, raw; empty if it was deleted."""
    return _read_files(folder, sequence, target).text


def list_packets(folder: str) -> tuple[tuple[int, str, str], ...]:
    """Return session folder `folder`'s packets in order: (sequence, target, absolute JSON path)."""
    try:
        return tuple(list_rows(get_resume_folder(folder)))
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise RelayError(f"cannot read the packets in {folder}: {problem.strerror}") from problem


def list_rows(resume: str) -> list[tuple[int, str, str]]:
    """Return what `list_packets` does, for the `resume` folder itself. Raise OSError."""
    found = (_NUMBERED.fullmatch(name) for name in os.listdir(resume))
    return sorted((int(match[1]), match[2], os.path.join(resume, match[0])) for match in found if match)


def name_stem(sequence: int, target: str) -> str:
    """Return the name of a packet's files without their ending. Raise what `check_target` does."""
    return f"{sequence:04}-{check_target(target)}"


def name_original(stem: str) -> str:
    """Return the name of the file that keeps what was published under `stem`."""
    return f".{stem}.published.json"


def check_target(target: str) -> str:
    """Return `target`; raise UntrustedDataError if it is no agent's name: it might leave the folder."""
    if not _TARGET.fullmatch(target):
        raise UntrustedDataError("a packet's target is not the name of an agent")
    return target


def read_document(path: str) -> dict[str, object]:
    """Read the JSON object at `path`. Raise UntrustedDataError if there is none."""
    try:
        return parse_document(read_bounded(path, limit_bytes=LIMIT_BYTES), name=path)
    except FileNotFoundError:
        raise UntrustedDataError(f"there is no packet at {path}") from None


def locked(resume: str) -> contextlib.AbstractContextManager[bool]:
    """Lock `resume`; the context's value tells whether that worked: false if the file system has no locks.

    Raises RelayError if another process keeps the folder for too long, OSError if it is none.
    """
    return lock_folder(resume, f"another process is publishing in {resume}")


def _read_files(folder: str, sequence: int, target: str) -> _Now:
    return _read_now(get_resume_folder(folder), name_stem(sequence, target))


def _read_now(resume: str, stem: str) -> _Now:
    document = read_document(os.path.join(resume, f"{stem}.json"))
    own = document.pop(PUBLISHED, None)
    original, kept = _read_original(os.path.join(resume, name_original(stem)))
    # Whoever rewrites the document by a program may lose a field it does not know.
    seals: Mapping[str, object] = own if isinstance(own, dict) else kept
    if original is not None and seals != kept:
        original = None
    try:
        body = read_bounded(os.path.join(resume, f"{stem}.md"), limit_bytes=LIMIT_BYTES)
    except FileNotFoundError:
        body = None
    document_edited = fingerprint(document) != seals.get("document")
    text_edited = body is not None and sha256(body).hexdigest() != seals.get("text")
    edited: Edited = "nothing"
    if text_edited:
        edited = "both" if document_edited and "text" in seals else "text"
    elif document_edited:
        edited = "document"
    return _Now(document, body, original, edited)


def _read_original(path: str) -> tuple[Original | None, dict[str, object]]:
    """Return what was published, and its fingerprints; `None` and none if it was not kept whole."""
    try:
        found = parse_document(read_bounded(path, limit_bytes=2 * LIMIT_BYTES))
    except (FileNotFoundError, RelayError):
        return None, {}
    document, text = found.get("document"), found.get("text")
    if not isinstance(document, dict) or not isinstance(text, str):
        return None, {}
    body = text.encode("utf-8", "backslashreplace")
    seals: dict[str, object] = {"document": fingerprint(document), "text": sha256(body).hexdigest()}
    return Original(document, text), seals


def read_as_left(folder: str, sequence: int, target: str) -> ResumePacket:
    """Return packet `sequence` with the user's edits of its document and of its text.

    Raises UntrustedDataError if it is missing or cannot be trusted.
    """
    now = _read_files(folder, sequence, target)
    packet = parse_packet(
        now.document, name=f"{get_resume_folder(folder)}/{name_stem(sequence, target)}.json"
    )
    if now.original is None or not now.is_text_edited:
        return packet
    return absorb_edit(packet, now.original.text, now.text)


def is_emptied(folder: str, sequence: int, target: str) -> bool:
    """Tell whether the user's edit emptied the packet's text. Raise UntrustedDataError."""
    now = _read_files(folder, sequence, target)
    return now.is_text_edited and not now.text.strip()


def replace_file(path: str, data: bytes, *, before: bytes, is_picked_up: Callable[[], bool]) -> None:
    """Replace the packet's file at `path`, which held `before`, by `data` while the packet still waits.

    Pickup reads under the same lock after the journal records it, so what is written here is read. Raises
    RelayError, with nothing changed, if the packet was picked up, the file was changed meanwhile or the disk
    refuses.
    """
    if len(data) > LIMIT_BYTES:
        raise RelayError(f"{path} would be larger than {LIMIT_BYTES} bytes", hint="Shorten it.")
    try:
        with locked(os.path.dirname(path)):
            if is_picked_up():
                raise RelayError(
                    f"{os.path.basename(path)} was picked up meanwhile, so the edit comes too late",
                    hint="Tell its successor instead.",
                )
            if read_bounded(path, limit_bytes=LIMIT_BYTES) != before:
                raise RelayError(
                    f"{os.path.basename(path)} was changed by another program meanwhile",
                    hint="Look at both: agent-relay packet diff",
                )
            write_atomic(path, data)
    except FileNotFoundError:
        raise RelayError(f"{path} was deleted meanwhile") from None
    except OSError as problem:
        raise cannot_write(path, problem) from problem


_NARRATIVE, _DIGEST = "narrative.json", "digest.json"
_DOCUMENT_BYTES = 1 << 20
_Own = TypeVar("_Own", bound=msgspec.Struct)


class NarrativeDocument(msgspec.Struct, frozen=True):
    """A redacted document, and the leg whose agent wrote it.

    `at` is for people to read; `moment` is the same in ISO 8601, empty in documents of older versions.
    """

    leg: str
    agent: str
    at: str
    focus: str
    text: str
    moment: str = ""


def write_narrative(folder: str, kept: NarrativeDocument) -> None:
    """Write the session's document; raise RelayError, with an older one untouched, on failure."""
    _write_own(folder, _NARRATIVE, kept)


def read_narrative(folder: str, leg: str) -> NarrativeDocument | None:
    """Return what the agent of `leg` wrote; `None` if it wrote nothing that can be read."""
    kept = _read_own(folder, _NARRATIVE, NarrativeDocument)
    return kept if kept is not None and kept.leg == leg and kept.text and kept.at else None


class DigestDocument(msgspec.Struct, frozen=True):
    """A redacted document that the successor of a handoff wrote from the record, before its first turn."""

    handoff: str
    agent: str
    at: str
    moment: str
    text: str


def write_digest(folder: str, kept: DigestDocument) -> None:
    """Write the session's document; raise RelayError, with an older one untouched, on failure."""
    _write_own(folder, _DIGEST, kept)


def read_digest(folder: str, handoff: str) -> DigestDocument | None:
    """Return the document written for the handoff; `None` if there is none that can be read."""
    kept = _read_own(folder, _DIGEST, DigestDocument)
    is_whole = kept is not None and kept.handoff == handoff and all(asdict(kept).values())
    return kept if is_whole else None


def _write_own(folder: str, name: str, kept: msgspec.Struct) -> None:
    write_atomic(os.path.join(folder, name), json.dumps(asdict(kept), ensure_ascii=False).encode())


def _read_own(folder: str, name: str, kind: type[_Own]) -> _Own | None:
    """Return the document of this kind, what it lacks as empty texts; `None` if one is no text."""
    found = read_object(os.path.join(folder, name), limit_bytes=_DOCUMENT_BYTES)
    known = {name: found.get(name, "") for name in kind.__struct_fields__}
    return kind(**known) if all(isinstance(value, str) for value in known.values()) else None


def save_beside_packets(folder: str, text: str, at: datetime) -> str:
    """Write the document to a file of its own in session `folder`; return its path. Raise RelayError."""
    resume = get_resume_folder(folder)
    path = os.path.join(resume, f"handoff-{at:%Y%m%dT%H%M%SZ}.md")
    try:
        # Whoever publishes takes away what others have not finished there.
        with locked(resume):
            write_atomic(path, f"{text}\n".encode(), durable=False)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path
