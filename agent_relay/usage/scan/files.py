"""Find every file in which an agent records what it has used."""

import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from agent_relay.agents.source_paths import LegPlace, PathPattern, expand_path

# Deeper than any agent nests; a bound for folders somebody made to hurt.
_DEPTH = 12
# The year 2262; some file systems take dates that fit no 64 bits in ns.
_LATEST_NS = 2**63 - 1


class UsageSpec(Protocol):
    """The part of an adapter's `Transcript` about usage: where the records are, and which reader fits."""

    @property
    def reader(self) -> str:
        """The name of the reader."""

    @property
    def folder(self) -> str:
        """The folder of the transcripts."""

    @property
    def pattern(self) -> str:
        """Which files in it are transcripts."""

    @property
    def usage(self) -> tuple[str, ...]:
        """The patterns of the records if they are other files."""


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
