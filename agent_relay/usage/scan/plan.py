"""Plan which files are to be read for usage, and for which agent."""

import os
from collections.abc import Mapping

import msgspec

from agent_relay.sources.transcript_files import read_small
from agent_relay.transcripts.usage.readers import USAGE_READERS, UsageReader
from agent_relay.transcripts.usage.records import ReaderState
from agent_relay.usage.scan.files import Found, UsageSpec, find_usage_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.usage._dedupe import Native
    from agent_relay.usage.scan.damage import Damage

_MARK_BYTES = 64 << 10
_MARK_LEVELS = 4


class UsageRead(msgspec.Struct):
    """The native sessions found, and how the reading went.

    `problems` are sentences about files that could not be read, `gaps` the first of them by agent; `skipped`
    counts lines that could not, `damages` those of each file. `roots` are the working folders named in files
    beside the records, by the folder they are in.
    """

    natives: "list[Native]" = msgspec.field(default_factory=list)
    files: int = 0
    new_bytes: int = 0
    skipped: int = 0
    damages: "list[Damage]" = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    gaps: dict[str, str] = msgspec.field(default_factory=dict)
    roots: dict[str, str] = msgspec.field(default_factory=dict)


class AgentFiles(msgspec.Struct, frozen=True):
    """The files of one agent, its reader, and the `name` of both in the index."""

    agent: str
    reader: UsageReader
    name: str
    found: list[Found]


def plan_files(
    specs: Mapping[str, UsageSpec], done: UsageRead, *, home: str, environ: Mapping[str, str]
) -> list[AgentFiles]:
    """Return the files to read by agent, each file once; a folder that cannot be opened leaves a gap."""
    plan, taken = list[AgentFiles](), set[tuple[int, int]]()
    for agent, spec in specs.items():
        load_reader = USAGE_READERS.get(spec.reader)
        if load_reader is None:
            continue
        closed = list[str]()
        found = [
            one
            for one in find_usage_files(spec, home=home, environ=environ, closed=closed)
            if (one.device, one.inode) not in taken
        ]
        taken |= {(one.device, one.inode) for one in found}
        if closed:
            done.problems += closed
            done.gaps[agent] = closed[0]
        # Most agents are not on most machines, and need nobody who understands them.
        plan.append(
            AgentFiles(agent, load_reader() if found else UsageReader(), f"{agent} {spec.reader}", found)
        )
    return plan


def begin_memory(reader: UsageReader, path: str, done: UsageRead) -> ReaderState:
    """Return what a reader knows before the first line."""
    return ReaderState(cwd=find_root(reader, path, done), parent=_find_parent(reader, path))


def find_root(reader: UsageReader, path: str, done: UsageRead) -> str:
    """Return the working folder if a file in a folder above `path` names it; else empty."""
    if not reader.root_mark:
        return ""
    folder = beside = os.path.dirname(path)
    if beside in done.roots:
        return done.roots[beside]
    found = ""
    for _ in range(_MARK_LEVELS):
        mark = os.path.join(folder, reader.root_mark)
        data = read_small(mark, limit_bytes=_MARK_BYTES)
        if data is not None:
            found = os.fsdecode(data).strip()
            break
        folder = os.path.dirname(folder)
    done.roots[beside] = found
    return found


def _find_parent(reader: UsageReader, path: str) -> str:
    """Return the session in whose folder a subagent's file lies; empty for a main session's."""
    if not reader.sessions_folder:
        return ""
    folder = os.path.basename(os.path.dirname(path))
    return "" if folder == reader.sessions_folder else folder
