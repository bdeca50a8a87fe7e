"""What readers take and are: transcripts already read into memory, and the reader's own type."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_relay.domain.facts import Facts

# Longer lines hold pasted images or dumped files, not facts; decoding them would only cost memory.
LINE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a transcript goes on from another one: `before` is the first ordinal not taken over."""

    native_id: str
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Ancestor:
    """The lines of a transcript this one was forked from, up to the ordinal `before` (exclusive)."""

    lines: Iterable[bytes]
    place: str = ""
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
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
    """What the first lines of a transcript say about it; empty where they do not say."""

    native_id: str = ""
    cwd: str = ""
    title: str = ""
    started_at: datetime | None = None
    is_main: bool = True
    fork: Fork | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """One native format: how it is stored, and the functions that understand it.

    `storage` says what the floor below hands over: `lines` of a file, or `tables` of a database (or
    its export). `root_mark` is a file in the session's grandparent folder that holds the working
    folder, for formats whose records do not; `prompt_log` is a file there that outlives sessions.
    `exports` are name patterns under which copies of a session may lie.
    """

    agent: str
    storage: Literal["lines", "tables"]
    read: Callable[[Source], Facts]
    peek: Callable[[Iterable[bytes]], Peek]
    patterns: tuple[str, ...]
    root_mark: str = ""
    prompt_log: str = ""
