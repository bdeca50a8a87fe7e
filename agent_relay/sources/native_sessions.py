"""Find the sessions agents keep themselves, and the programs of people that have one open."""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec

from agent_relay.agents.source_paths import LegPlace, expand_path
from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.sources import transcript_reader as transcripts
from agent_relay.sources.transcript_files import list_rows
from agent_relay.system import processes
from agent_relay.transcripts.fact_reading import Peek, TranscriptReader
from agent_relay.transcripts.lenient_json import parse_moment

_SLACK = timedelta(seconds=2)
"""A process's start is known in hundredths of a second since boot, and the boot itself to a second."""
_POLITE_S = 8.0
_FIRM_S = 3.0
_MARK = f"{LEG_VARIABLE}=".encode()


def find_holding(path: str) -> list[tuple[int, int]]:
    """List the processes that have the file open, as (pid, born), without those that relay started.

    Source: proc(5), /proc/<pid>/fd.
    """
    wanted = os.path.realpath(path)
    return _list_foreign([pid for pid in processes.list_pids() if wanted in (processes.list_open(pid) or ())])


def find_running(program: str, cwd: str, *, by: datetime, now: datetime) -> list[tuple[int, int]]:
    """List who runs `program` in `cwd` and began `by` then, as (pid, born); not what relay started."""
    folder = os.path.realpath(cwd)
    found = _list_foreign(
        [pid for pid in processes.list_pids() if _is_at(pid, folder) and _runs(pid, program)]
    )
    return [one for one in found if now - timedelta(seconds=processes.get_age_s(one[1])) <= by + _SLACK]


def end_programs(found: list[tuple[int, int]]) -> None:
    """End the processes with SIGTERM, then SIGKILL. Blocks.

    Raises RelayError if one does not end.
    """
    began = time.monotonic()
    for number, limit_s in ((signal.SIGTERM, _POLITE_S), (signal.SIGKILL, _FIRM_S)):
        for pid, pid_born in found:
            processes.send_signal(pid, pid_born, number)
        if processes.wait_for_end(found, limit_s=limit_s):
            return
    names = ", ".join(str(pid) for pid, _ in found)
    raise RelayError(f"process {names} did not end within {time.monotonic() - began:.0f} s")


def _list_foreign(pids: list[int]) -> list[tuple[int, int]]:
    known = ((pid, processes.born(pid)) for pid in pids if pid != os.getpid() and not _is_ours(pid))
    return [(pid, pid_born) for pid, pid_born in known if pid_born is not None]


def _is_ours(pid: int) -> bool:
    """Check whether relay started the process, or it is another user's and cannot be inspected."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(_MARK) for entry in file.read().split(b"\0"))
    except OSError:
        return True


def _is_at(pid: int, folder: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == folder
    except OSError:
        return False


def _runs(pid: int, program: str) -> bool:
    """Check whether the process's command is the program, or an interpreter with it.

    Programs may give themselves a title.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(8192).split(b"\0")[:2]
    except OSError:
        return False
    name, real = os.path.basename(program), os.path.realpath(program)
    for word in map(os.fsdecode, words):
        if word == name or (os.path.isabs(word) and os.path.realpath(word) == real):
            return True
    return False


# File systems may round times to whole seconds.
_ROUNDING_S = 1.0
_TITLE_LENGTH = 200
_WEIGHED = 16
"""Most conversations, newest first, that are considered."""


class FoundSessions(msgspec.Struct, frozen=True):
    """`sessions`, newest first; `unread` says why others that might be among them cannot be read."""

    sessions: tuple[NativeSession, ...]
    unread: tuple[RelayError, ...]


class ConversationOwner(msgspec.Struct, frozen=True):
    """The owner of a conversation whose id is not known.

    `pid` is the agent's living process, 0 for none; `others` are the ids of conversations known to be
    other legs'. `words` are texts that were typed into the one looked for and into no other.
    """

    pid: int = 0
    others: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()


def find_transcript(
    spec: Transcript,
    *,
    native_id: str = "",
    cwd: str,
    since: datetime | None = None,
    home: str,
    environ: Mapping[str, str],
    owner: ConversationOwner | None = None,
) -> NativeSession | None:
    """Find the session called `native_id`, else the one of `cwd` changed after `since` that is `owner`'s.

    With neither `native_id` nor `since` it is the newest of `cwd`. Raises RelayError if there is none but one
    that might be it cannot be read, or if several might be it.
    """
    closed = list[RelayError]()
    found = _iterate_sessions(spec, native_id, closed, cwd=cwd, since=since, home=home, environ=environ)
    if not native_id and since is not None:
        session = _choose(spec, list(islice(found, _WEIGHED)), since, owner or ConversationOwner())
    else:
        session = next(found, None) or _find_deleted(spec, native_id, cwd=cwd, home=home, environ=environ)
    if session is None and closed:
        raise closed[0]
    return session


def _choose(
    spec: Transcript, found: Sequence[NativeSession], since: datetime, owner: ConversationOwner
) -> NativeSession | None:
    """Choose the one of `found`, newest first, that is `owner`'s; `None` if there is none.

    What the agent has open decides, then what no other process has open, then what was begun within the leg,
    then what was said in it. Raises RelayError if several are left.
    """
    if spec.held_open and owner.pid:
        real = {os.path.realpath(one.path): one for one in found}
        held = processes.find_open_files(owner.pid, real.__contains__)
        if held is not None:
            return next((one for path, one in real.items() if path in held), None)
    left = [one for one in found if one.native_id not in owner.others]
    if spec.held_open:
        paths = {os.path.realpath(one.path) for one in left}
        elsewhere = processes.find_open_elsewhere(paths, but=owner.pid)
        left = [one for one in left if os.path.realpath(one.path) not in elsewhere]
    begun = since.timestamp() - _ROUNDING_S
    fresh = [one for one in left if one.started_at is None or one.started_at.timestamp() >= begun]
    left = fresh or left
    if len(left) > 1 and owner.words:
        left = [one for one in left if _holds_words(spec, one, owner.words)] or left
    if len(left) > 1:
        raise RelayError(
            f"{len(left)} conversations in this folder may be this one's, and nothing tells which",
            hint="Start agents through agent-relay, or one of a kind in a folder.",
        )
    return left[0] if left else None


def _holds_words(spec: Transcript, native: NativeSession, words: Sequence[str]) -> bool:
    """Check whether the user said one of `words` in this conversation."""
    try:
        facts = transcripts.read_facts(spec.reader, native.path, native_id=native.native_id)
    except RelayError:
        return False
    said = [_squeeze(one.text) for one in facts.conversation if one.role == "user"]
    return any(_squeeze(word) in text for word in words for text in said)


def _squeeze(text: str) -> str:
    """Remove the blanks from `text`: agents fold the lines of what is pasted."""
    return "".join(text.split())


def find_native_sessions(
    spec: Transcript,
    *,
    cwd: str,
    home: str,
    environ: Mapping[str, str],
    limit: int = 20,
    but: AbstractSet[str] = frozenset(),
) -> FoundSessions:
    """List the newest sessions of `cwd` but those ids, and what could not be read in the search for them."""
    closed = list[RelayError]()
    found = _iterate_sessions(spec, "", closed, cwd=cwd, since=None, home=home, environ=environ)
    wanted = (one for one in found if one.native_id not in but)
    return FoundSessions(tuple(islice(wanted, limit)), tuple(closed))


def _iterate_sessions(
    spec: Transcript,
    native_id: str,
    closed: list[RelayError],
    *,
    cwd: str,
    since: datetime | None,
    home: str,
    environ: Mapping[str, str],
) -> Iterator[NativeSession]:
    """Yield the sessions asked for, newest first; errors of unreadable ones are added to `closed`."""
    reader = transcripts.get_reader(spec.reader)
    place = LegPlace("", datetime.now(UTC), {"home": home, "cwd": cwd, "native_id": native_id}, environ)
    pattern = expand_path(f"{spec.folder}/{spec.pattern}", place)
    paths = [] if pattern is None else list(pattern.find())
    if reader.tables is not None:
        found = _iterate_rows(reader, paths, closed)
    else:
        found = _iterate_files(reader, paths, native_id, cwd, closed)
    for session in found:
        if native_id and session.native_id != native_id:
            continue
        if not native_id and not _is_same_folder(session.cwd, cwd):
            continue
        if since is not None and session.changed_at.timestamp() < since.timestamp() - _ROUNDING_S:
            if native_id:
                continue
            break  # they come newest first
        yield session


def _find_deleted(
    spec: Transcript, native_id: str, *, cwd: str, home: str, environ: Mapping[str, str]
) -> NativeSession | None:
    """Find a session whose file its agent deleted, by the log of prompts that outlives it."""
    reader = transcripts.get_reader(spec.reader)
    if not reader.prompt_log or not native_id:
        return None
    place = LegPlace("", datetime.now(UTC), {"home": home, "cwd": cwd, "native_id": native_id}, environ)
    beside = os.path.dirname(os.path.dirname(spec.pattern))
    pattern = expand_path(os.path.join(spec.folder, beside, reader.prompt_log), place)
    for changed_at, path in transcripts.list_newest(
        [] if pattern is None else list(pattern.find()), transcripts.PEEKED_FILES
    ):
        prompts = [
            entry for entry in transcripts.read_prompts(reader, path) if entry.get("sessionId") == native_id
        ]
        if prompts:
            peek = Peek(native_id=native_id, title=str(prompts[0].get("message") or ""))
            return _build_session(peek, path, transcripts.read_root_mark(reader, path), changed_at)
    return None


def _iterate_files(
    reader: TranscriptReader, paths: list[str], native_id: str, cwd: str, closed: list[RelayError]
) -> Iterator[NativeSession]:
    """Yield the sessions of `paths`, newest first; a file's name holds the id, or its beginning.

    The errors of files that exist but cannot be read are added to `closed`, as in `_iterate_rows`.
    """
    named = [path for path in paths if not native_id or native_id[:8] in os.path.basename(path)]
    for changed_at, path in transcripts.list_newest(named, transcripts.PEEKED_FILES):
        marked = transcripts.read_root_mark(reader, path)
        if not native_id and marked and not _is_same_folder(marked, cwd):
            continue
        try:
            peek = transcripts.peek_into(reader, path)
        except RelayError as error:
            closed += [error] if os.path.lexists(path) else []
            continue
        if peek.is_main:
            yield _build_session(peek, path, marked or peek.cwd, changed_at)


def _iterate_rows(
    reader: TranscriptReader, paths: list[str], closed: list[RelayError]
) -> Iterator[NativeSession]:
    if reader.tables is None:
        return
    columns = reader.tables.columns
    strange, is_known = list[RelayError](), False
    for _, path in transcripts.list_newest(paths, transcripts.PEEKED_FILES):
        try:
            rows = list_rows(path, reader.tables)
        except RelayError as error:
            (strange if _is_of_another_kind(error) else closed).append(error)
            continue
        is_known = True
        for row in rows:
            changed_at = parse_moment(row.get(columns["updated"]))
            peek = Peek(
                native_id=str(row.get(columns["native_id"]) or ""),
                title=str(row.get(columns["title"]) or ""),
                started_at=parse_moment(row.get(columns["started"])),
            )
            cwd = str(row.get(columns["cwd"]) or "")
            if changed_at is not None:
                yield _build_session(peek, path, cwd, changed_at)
    # Beside one that holds sessions it is of no interest; alone it may be what a newer version keeps them in.
    closed += [] if is_known else strange[:1]


def _is_of_another_kind(error: RelayError) -> bool:
    """Check whether a database is intact but holds no sessions: it lacks what was queried."""
    import sqlite3

    cause = error.__cause__
    return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _build_session(peek: Peek, path: str, cwd: str, changed_at: datetime) -> NativeSession:
    title = " ".join(peek.title[:_TITLE_LENGTH].split())
    return NativeSession(path, peek.native_id, cwd, title, changed_at, peek.started_at)


def _is_same_folder(one: str, other: str) -> bool:
    return bool(one) and (one == other or os.path.realpath(one) == os.path.realpath(other))
