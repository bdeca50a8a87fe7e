"""The sessions agents keep themselves in one folder: what `--from` and its question choose from."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.facts import NativeSession
from agent_relay.faces.cli.printing import plain
from agent_relay.logic.redact.text import redact_text
from agent_relay.system.adapter_catalog import load_adapters
from agent_relay.system.folders import get_folders
from agent_relay.system.glances import find_near_root, list_own_at
from agent_relay.system.native_sessions import find_native_sessions
from agent_relay.system.regular_files import open_stream

MOST = 20
"""How many sessions of one agent are listed."""
_TITLE_LENGTH = 60
_LINE_BYTES = 64 << 10
"""Journal lines that name a native session are far shorter; of a longer one the beginning is looked at."""


@dataclass(frozen=True, slots=True)
class Native:
    """One agent's own session. `title` is on one line, without secrets and harmless to a terminal."""

    agent: str
    native_id: str
    title: str
    changed_at: datetime
    path: str

    @property
    def word(self) -> str:
        """What chooses it: `--from` takes this."""
        return f"{self.agent}:{self.native_id}"


@dataclass(frozen=True, slots=True)
class Unread:
    """What might be one of an agent's sessions here and cannot be read, with `why` in one sentence."""

    agent: str
    why: str


def list_natives(cwd: str, environ: Mapping[str, str]) -> tuple[list[Native], list[Unread]]:
    """The native sessions of every agent in `cwd` that are no leg of a session of ours, newest first.

    Beside them what cannot be read, and might be one of them.
    """
    root = find_near_root(cwd)
    folders = get_folders(environ)
    known = _read_own_ids(root, folders.sessions)
    found: list[Native] = []
    unread: list[Unread] = []
    for name, loaded in load_adapters(folders, root=root).items():
        spec = loaded.adapter.transcript
        if spec is None:
            continue
        try:
            own = find_native_sessions(
                spec, cwd=cwd, home=environ.get("HOME", ""), environ=environ, limit=MOST
            )
        except RelayError as error:
            unread.append(Unread(name, error.sentence))
            continue
        found += [_build(name, native) for native in own.sessions if native.native_id not in known]
        unread += [Unread(name, error.sentence) for error in own.unread]
    return sorted(found, key=lambda native: native.changed_at, reverse=True), unread


def render_age(changed_at: datetime, now: datetime) -> str:
    """How long ago that was: `5 min`, `3 h`, `12 days`."""
    minutes = max(0, int((now - changed_at).total_seconds() // 60))
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"  # noqa: PLR2004 - two days


def build_unread_view(unread: list[Unread]) -> list[dict[str, object]]:
    """One row each: agent, why."""
    return [{"agent": one.agent, "why": plain(one.why)} for one in unread]


def build_view(natives: list[Native], now: datetime) -> list[dict[str, object]]:
    """One row a session: agent, native_id, title, changed_at (ISO 8601), age_s, path, from."""
    return [
        {
            "agent": native.agent,
            "native_id": native.native_id,
            "title": native.title,
            "changed_at": native.changed_at.isoformat(),
            "age_s": max(0, int((now - native.changed_at).total_seconds())),
            "path": plain(native.path),
            "from": native.word,
        }
        for native in natives
    ]


def list_columns(native: Native) -> list[str]:
    """One session as the cells of a row: agent, age, title, what chooses it."""
    return [native.agent, render_age(native.changed_at, datetime.now(UTC)), native.title or "-", native.word]


def _build(agent: str, native: NativeSession) -> Native:
    title = plain(" ".join(redact_text(native.title).text.split()))
    short = title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
    return Native(agent, plain(native.native_id), short, native.changed_at, native.path)


def _read_own_ids(root: str, index: str) -> set[str]:
    """The native ids our own legs here have had, as the journals say."""
    found: set[str] = set()
    for session in list_own_at(root, index):
        try:
            path = os.path.join(root, ".agent-relay", "sessions", session, "journal.jsonl")
            with open_stream(path) as stream:
                while line := stream.readline(_LINE_BYTES):
                    found |= _find_own_id(line)
        except (OSError, UntrustedDataError):
            continue
    return found


def _find_own_id(line: bytes) -> set[str]:
    if b'"native_id"' not in line:
        return set()
    try:
        data = json.loads(line).get("data")
    except (ValueError, RecursionError, AttributeError):
        return set()
    named = data.get("native_id") if isinstance(data, dict) else None
    return {named} if isinstance(named, str) and named else set()
