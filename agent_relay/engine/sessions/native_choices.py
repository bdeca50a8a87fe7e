"""List the sessions agents keep themselves in a folder, for the user to choose one to go on with.

Sessions that are a leg of one of ours are left out.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.names import get_journal_path
from agent_relay.domain.values import AgentName
from agent_relay.engine.publishing.limited_work import redact_in_thread
from agent_relay.sources.native_sessions import find_native_sessions
from agent_relay.store.session_index import find_near_root, list_own_at
from agent_relay.system.disk.files import open_stream

MOST = 20
"""Most sessions of one agent that are listed."""
_LINE_BYTES = 64 << 10
"""Most bytes of a journal line that are looked at: one that names a native session is far shorter."""

NativeRow = dict[str, str]
"""One agent's own session: `agent`, `native_id`, `title`, `changed_at` (ISO 8601) and `path`.

The title has no secrets; like the others it may hold what must not be printed as it is.
"""


def list_natives(
    adapters: Mapping[AgentName, LoadedAdapter],
    cwd: str,
    environ: Mapping[str, str],
    *,
    index: str,
    since: datetime | None = None,
) -> tuple[list[NativeRow], list[tuple[str, str]]]:
    """Return every agent's native sessions in `cwd` that changed after `since`, newest first. Reads disk.

    The second list has the agents of those that cannot be read, and why not, in one sentence. `index` is the
    folder in which our own sessions are named.
    """
    found: list[tuple[str, NativeSession]] = []
    unread: list[tuple[str, str]] = []
    for name, loaded in adapters.items():
        spec = loaded.adapter.transcript
        if spec is None:
            continue
        try:
            own = find_native_sessions(
                spec, cwd=cwd, home=environ.get("HOME", ""), environ=environ, limit=MOST
            )
        except RelayError as error:
            unread.append((name, error.sentence))
            continue
        found += [(name, one) for one in own.sessions if since is None or one.changed_at > since]
        unread += [(name, error.sentence) for error in own.unread]
    known = read_own_ids(cwd, index) if found else set[str]()
    strange = [(name, native) for name, native in found if native.native_id not in known]
    strange.sort(key=lambda one: one[1].changed_at, reverse=True)
    # Removing secrets takes longest: it is done only for titles that are listed.
    return [_build_row(name, native) for name, native in strange], unread


def _build_row(agent: str, native: NativeSession) -> NativeRow:
    return {
        "agent": agent,
        "native_id": native.native_id,
        "title": redact_in_thread(native.title),
        "changed_at": native.changed_at.isoformat(),
        "path": native.path,
    }


def read_own_ids(cwd: str, index: str) -> set[str]:
    """Return the native ids that our own legs here have had, from the journals."""
    root = find_near_root(cwd)
    return {found for session in list_own_at(root, index) for found in _iterate_ids(root, session)}


def _iterate_ids(root: str, session: str) -> Iterator[str]:
    try:
        with open_stream(get_journal_path(root, session)) as stream:
            while line := stream.readline(_LINE_BYTES):
                if native_id := _find_own_id(line):
                    yield native_id
    except (OSError, UntrustedDataError):
        return


def _find_own_id(line: bytes) -> str:
    if b'"native_id"' not in line:
        return ""
    try:
        data = json.loads(line).get("data")
    except (ValueError, RecursionError, AttributeError):
        return ""
    named = data.get("native_id") if isinstance(data, dict) else None
    return named if isinstance(named, str) else ""
