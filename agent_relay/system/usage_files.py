"""Finds every file that tells what an agent has used, and reads new bytes of one with bounded memory."""

import mmap
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.logic.transcripts.limits import LINE_BYTES
from agent_relay.logic.transcripts.usage.spans import Block
from agent_relay.system.sources.place import LegPlace, PathPattern, expand_path
from agent_relay.system.transcript_files import cannot_read

BLOCK_BYTES = 4 << 20
_MAPPED_BYTES = 16 << 20
# Deeper than any agent nests; a bound for folders somebody made to hurt.
_DEPTH = 12
_GUARD_BYTES = 256
# The year 2262; some file systems take dates that fit no 64 bits in ns.
_LATEST_NS = 2**63 - 1


class UsageSpec(Protocol):
    """What an adapter's `Transcript` says of records of usage: where they are, and who understands them."""

    @property
    def reader(self) -> str:
        """The name of the reader."""

    @property
    def folder(self) -> str:
        """The folder of the transcripts."""

    @property
    def pattern(self) -> str:
        """Which files in it are some."""

    @property
    def usage(self) -> tuple[str, ...]:
        """The patterns of the records, where they are others."""


class Found(msgspec.Struct, frozen=True):
    """A file and the state of it that tells whether it has changed.

    `changed` holds the moments (epoch in ns) at which its contents and anything of it changed last: the
    first can be set to any moment by whoever copies or restores files, the second cannot.
    """

    path: str
    device: int
    inode: int
    size: int
    changed: tuple[int, ...]


class Walked(msgspec.Struct, frozen=True):
    """`folders` were looked into, or would have been; `closed` are sentences about those that cannot be."""

    folders: list[str] = msgspec.field(default_factory=list)
    closed: list[str] = msgspec.field(default_factory=list)


def find_usage_files(
    spec: UsageSpec, *, home: str, environ: Mapping[str, str], walked: Walked | None = None
) -> list[Found]:
    """The files of the agent with this transcript, each once, by path; none where nothing is there.

    Links to folders are followed, but no folder twice. What is in a folder that cannot be looked into is
    missing, and `walked` is told. Raises ConfigurationError for a broken pattern.
    """
    walked = Walked() if walked is None else walked
    place = LegPlace("", datetime.now(UTC), {"home": home}, environ)
    found: dict[tuple[int, int], Found] = {}
    for form in spec.usage or (f"{spec.folder}/{spec.pattern}",):
        pattern = expand_path(form, place)
        if pattern is None:
            continue
        for path in _walk(pattern.folder, pattern, set(), walked, _DEPTH):
            one = look_at(path)
            if one is not None:
                found.setdefault((one.device, one.inode), one)
    return sorted(found.values(), key=lambda one: one.path)


def look_at(path: str) -> Found | None:
    """The state of a regular file; `None` for anything else, and for what is gone."""
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
    folder: str, pattern: PathPattern, seen: set[tuple[int, int]], walked: Walked, depth: int
) -> Iterator[str]:
    walked.folders.append(folder)
    try:
        own = os.stat(folder)
        if (own.st_dev, own.st_ino) in seen or depth < 0:
            return
        seen.add((own.st_dev, own.st_ino))
        with os.scandir(folder) as entries:
            listed = sorted((entry.path, _is_folder(entry), entry.is_symlink()) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        walked.closed.append(f"cannot look into {folder}: {error.strerror}")
        return
    for path, is_folder, is_link in listed:
        if is_link and not is_folder:
            walked.folders.append(path)  # it may lead to a folder later, and nothing here would change
        if not is_folder:
            if pattern.matches(path):
                yield path
        elif pattern.may_lie_below(path):
            yield from _walk(path, pattern, seen, walked, depth - 1)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def read_mapped(path: str, read: Callable[[Block], None]) -> tuple[int, bytes] | None:
    """Hands all of a file of whole lines to `read` where the kernel has it: a copy takes half as long again.

    Returns its size and the guard of it; `None`, with nothing read, for a file of another kind, or a large
    one. The process that asks for it is ended by SIGBUS where the file loses bytes meanwhile: it has to be
    one that may. Raises RelayError where it cannot be read.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", 0) as file:
            handle, state = file.fileno(), os.fstat(file.fileno())
            size = state.st_size
            if not stat.S_ISREG(state.st_mode) or not 0 < size <= _MAPPED_BYTES:
                return None
            if os.pread(handle, 1, size - 1) != b"\n":
                return None
            try:
                whole = mmap.mmap(handle, size, access=mmap.ACCESS_READ)
            except ValueError:
                # It has lost bytes since its size was asked for.
                return None
            with whole:
                read(whole)
            return size, _make_guard(handle, size)
    except OSError as error:
        raise cannot_read(path, error) from error


def read_blocks(
    path: str, offset: int, guard: bytes, read: Callable[[Block], None]
) -> tuple[int, bytes, bytes] | None:
    """Hands every block of whole lines from `offset` on to `read`.

    Returns the offset behind the last whole line, the guard of what was read up to there, and the bytes of
    an unfinished last line (empty where it is too long to be a record). `None`, with nothing read, where the
    file is no longer the one `guard` was made of. Raises RelayError where it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RelayError(f"{path} is not a regular file")
            if offset and _make_guard(handle, offset) != guard:
                return None
            offset, rest = _read_lines(handle, offset, read)
            return offset, _make_guard(handle, offset), rest
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_read(path, error) from error


def _make_guard(handle: int, offset: int) -> bytes:
    """The first and last bytes before `offset`: another file in its place begins or goes on differently."""
    size = min(offset, _GUARD_BYTES)
    return os.pread(handle, size, 0) + os.pread(handle, size, offset - size)


def _read_lines(handle: int, offset: int, read: Callable[[Block], None]) -> tuple[int, bytes]:
    end = os.fstat(handle).st_size
    rest, is_skipping = b"", False
    done = position = offset
    while position < end:
        block = os.pread(handle, min(BLOCK_BYTES, end - position), position)
        if not block:
            break
        position += len(block)
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest = b"" if is_skipping else rest + block
            if len(rest) > LINE_BYTES:
                rest, is_skipping = b"", True
            continue
        first = block.find(b"\n") + 1 if is_skipping else 0
        read((b"" if is_skipping else rest) + block[first:cut])
        rest, is_skipping = block[cut:], False
        done = position - len(rest)
    return done, rest
