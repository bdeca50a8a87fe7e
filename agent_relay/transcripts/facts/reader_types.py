"""Types of transcript readers: a transcript already read into memory, and the reader of one format."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agent_relay.domain.facts import Facts


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The point where a transcript continues another: `before` is the first ordinal not taken over."""

    native_id: str
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Ancestor:
    """The lines of a transcript this one was forked from, up to the ordinal `before` (exclusive)."""

    lines: Iterable[bytes]
    place: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """One native transcript, already read.

    JSON-lines formats fill `lines`; table formats fill `session`, `messages`, `parts` and `todos`
    with rows in the order the agent sees them. `prompts` are entries of the agent's separate log of
    prompts, for sessions whose own file is gone. `place` names the file for provenance.
    """

    place: str = ""
    native_id: str = ""
    cwd: str = ""
    lines: Iterable[bytes] = ()
    ancestors: tuple[Ancestor, ...] = ()
    prompts: tuple[Mapping[str, object], ...] = ()
    session: Mapping[str, object] | None = None
    messages: tuple[Mapping[str, object], ...] = ()
    parts: tuple[Mapping[str, object], ...] = ()
    todos: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Peek:
    """What the first lines of a transcript say about it; what they do not say is empty."""

    native_id: str = ""
    cwd: str = ""
    title: str = ""
    started_at: datetime | None = None
    is_main: bool = True
    fork: ForkPoint | None = None


@dataclass(frozen=True, slots=True)
class Tables:
    """The queries that read a session from a database.

    Each but `newest` takes the session's id. `columns` names the session row's columns that hold
    `native_id`, `cwd`, `title`, `started` and `updated` (epoch in seconds or milliseconds).
    """

    session: str
    newest: str
    messages: str
    parts: str
    todos: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TranscriptReader:
    """One native format: how it is stored, and the functions that read it.

    Formats with `tables` are databases; `unpack` reads their exported JSON. All others are files of lines.
    `root_mark` is a file in the grandparent folder of a session's file that holds the working folder, for
    formats whose records may not; `prompt_log` is a file there that outlives sessions. `patterns` are the
    file names, below any folder, of sessions of this format.
    """

    agent: str
    read: Callable[[TranscriptSource], Facts]
    peek: Callable[[Iterable[bytes]], Peek]
    patterns: tuple[str, ...]
    tables: Tables | None = None
    unpack: Callable[[object], TranscriptSource] | None = None
    root_mark: str = ""
    prompt_log: str = ""
