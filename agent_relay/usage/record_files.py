"""Find the files in which agents record what they have used, and read what is new in one."""

import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from agent_relay.agents.source_paths import LegPlace, PathPattern, expand_path
from agent_relay.domain.errors import RelayError
from agent_relay.sources.transcript_files import cannot_read
from agent_relay.system.disk.files import open_regular
from agent_relay.transcripts.lenient_json import LINE_BYTES
from agent_relay.transcripts.usage_readers import UsageReader
from agent_relay.transcripts.usage_records import ReaderState, UsageRecord, pack_answers

# Deeper than any agent nests; a bound for folders somebody made to hurt.
_DEPTH = 12
# The year 2262; some file systems take dates that fit no 64 bits in ns.
_LATEST_NS = 2**63 - 1


class UsageSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An adapter's table `transcript`, as `domain.documents.adapter` has it."""

    reader: str
    folder: str
    pattern: str
    usage: tuple[str, ...] = ()
    held_open: bool = False


class Found(msgspec.Struct, frozen=True):
    """A file and the state that changes whenever it does.

    `changed` holds the moments (epoch in ns) at which its contents and anything of it changed last: the
    first can be set to any moment by whoever copies or restores files, the second cannot.
    """

    path: str
    device: int
    inode: int
    size: int
    changed: tuple[int, ...]


def find_usage_files(
    spec: UsageSpec, *, home: str, environ: Mapping[str, str], closed: list[str] | None = None
) -> list[Found]:
    """Return the agent's files with records of usage, each once, by path; none if nothing exists.

    Links to folders are followed, but no folder twice. What is in a folder that cannot be opened is missing,
    and `closed` gets a sentence about it. Raises ConfigurationError for a broken pattern.
    """
    closed = [] if closed is None else closed
    place = LegPlace("", datetime.now(UTC), {"home": home}, environ)
    found: dict[tuple[int, int], Found] = {}
    for form in spec.usage or (f"{spec.folder}/{spec.pattern}",):
        pattern = expand_path(form, place)
        if pattern is None:
            continue
        for path in _walk(pattern.folder, pattern, set(), closed, _DEPTH):
            one = look_at(path)
            if one is not None:
                found.setdefault((one.device, one.inode), one)
    return sorted(found.values(), key=lambda one: one.path)


def look_at(path: str) -> Found | None:
    """Return the state of a regular file; `None` for anything else, and for a file that is gone."""
    try:
        known = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(known.st_mode):
        return None
    changed: tuple[int, ...] = known.st_mtime_ns, known.st_ctime_ns
    if not -_LATEST_NS <= min(changed) <= max(changed) <= _LATEST_NS:
        changed = tuple(max(-_LATEST_NS, min(moment, _LATEST_NS)) for moment in changed)
    return Found(path, known.st_dev, known.st_ino, known.st_size, changed)


def _walk(
    folder: str, pattern: PathPattern, seen: set[tuple[int, int]], closed: list[str], depth: int
) -> Iterator[str]:
    try:
        own = os.stat(folder)
        if (own.st_dev, own.st_ino) in seen or depth < 0:
            return
        seen.add((own.st_dev, own.st_ino))
        with os.scandir(folder) as entries:
            listed = sorted((entry.path, _is_folder(entry)) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        closed.append(f"cannot look into {folder}: {error.strerror}")
        return
    for path, is_folder in listed:
        if not is_folder:
            if pattern.matches(path):
                yield path
        elif pattern.may_lie_below(path):
            yield from _walk(path, pattern, seen, closed, depth - 1)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


BLOCK_BYTES = 256 << 10
"""Bytes that fit a core's cache: larger blocks take longer to read."""
_MOST_BYTES = 16 << 30
"""Most bytes, more than any agent writes: a file that claims to be larger would be read for hours."""
_GUARD_BYTES = 256


class Part(msgspec.Struct):
    """The records up to `offset`: its `marks`, the `memory` to continue with, and the file's `guard` there.

    `loose` are the records of a last line without its end: it may be whole, and is read again next time.
    """

    offset: int
    guard: bytes
    memory: ReaderState
    marks: list[UsageRecord]
    loose: list[UsageRecord]


def read_part(reader: UsageReader, path: str, offset: int, guard: bytes, memory: ReaderState) -> Part | None:
    """Read the part of `path` from `offset` on, to which `memory` (changed by this) and `guard` belong.

    Returns `None`, with nothing read, if the file is not the one they were made of. Raises RelayError if it
    cannot be read.
    """
    read, marks, loose = reader.read, list[UsageRecord](), list[UsageRecord]()
    if read is None:
        return Part(offset, guard, memory, marks, loose)
    try:
        handle = open_regular(path)
        try:
            size = os.fstat(handle).st_size
            if size - offset > _MOST_BYTES:
                raise RelayError(f"{path} is larger than {_MOST_BYTES >> 30} GiB")
            if offset and _make_guard(handle, offset) != guard:
                return None
            for block, offset_after in _iterate_blocks(handle, offset, size):
                if block.endswith(b"\n"):
                    offset = offset_after
                    marks.extend(read(block, memory))
                else:
                    loose.extend(read(block, msgspec.structs.replace(memory)))
            return Part(offset, _make_guard(handle, offset), memory, pack_answers(marks), loose)
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_read(path, error) from error


def _make_guard(handle: int, offset: int) -> bytes:
    """Return the first and last bytes before `offset`: another file at this path differs in one of them."""
    size = min(offset, _GUARD_BYTES)
    return os.pread(handle, size, 0) + os.pread(handle, size, offset - size)


def _iterate_blocks(handle: int, offset: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole lines and the offset after each; then the last line if it has no end.

    Of a line too long to be a record only as much is kept as shows that it is.
    """
    rest = b""
    while offset < end and (piece := os.pread(handle, min(BLOCK_BYTES, end - offset), offset)):
        offset += len(piece)
        lines, feed, after = piece.rpartition(b"\n")
        if feed:
            yield rest + lines + feed, offset - len(after)
            rest = after
        elif len(rest) <= LINE_BYTES:
            rest += piece
    if rest:
        yield rest, offset
