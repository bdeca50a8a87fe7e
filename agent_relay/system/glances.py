"""Sessions and resting agents as short views from files, for commands that need no daemon and start fast."""

import os

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.quick_json import parse_json
from agent_relay.domain.ulid import is_ulid
from agent_relay.logic.glance import begin_view, glance
from agent_relay.system.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JOURNAL_BYTES = 256 << 20
_INDEX_BYTES = 64 << 10
_LEDGER_BYTES = 1 << 20
_BELIEVED_S = 3600
"""As `logic.ledger` has it: how long a limit without a reset counts, unless it is about money."""


def find_near_root(cwd: str) -> str:
    """The folder whose `.agent-relay` belongs to `cwd`: the work tree around it, else `cwd` itself.

    Looks at names only: asking git would cost more than the rest of the command. Links are resolved.
    """
    start = folder = os.path.realpath(cwd)
    while True:
        mark = os.path.join(folder, ".git")
        if os.path.isfile(mark) or os.path.isfile(os.path.join(mark, "HEAD")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return start
        folder = above


def read_sessions_at(root: str) -> "list[dict[str, object]]":
    """The sessions of one working tree, newest change first; a journal that cannot be read says so."""
    return _sort([read_session(root, name) for name in list_sessions_at(root)])


def list_sessions_at(root: str) -> list[str]:
    """The ids of the sessions whose folders stand in one working tree."""
    try:
        names = os.listdir(os.path.join(root, ".agent-relay", "sessions"))
    except OSError:
        return []
    return [name for name in names if is_ulid(name)]


def read_all_sessions(index: str) -> "list[dict[str, object]]":
    """The sessions of every working tree the user's `index` folder names, newest change first."""
    return _sort([read_session(root, session) for session, root in list_index(index)])


def read_session(root: str, session: str) -> "dict[str, object]":
    """One session in short, as `logic.glance` has it; `state` is `unreadable` or `gone` where it is so."""
    folder = os.path.join(root, ".agent-relay", "sessions", session)
    empty = begin_view({"session": session, "root": root, "folder": folder}, "")
    try:
        data = read_bounded(os.path.join(folder, "journal.jsonl"), limit_bytes=JOURNAL_BYTES)
    except FileNotFoundError:
        return empty | {"state": "gone", "why": "its journal is gone"}
    except RelayError as error:
        return empty | {"state": "unreadable", "why": error.sentence}
    view = glance(_read_rows(data))
    if view is None:
        return empty | {"state": "unreadable", "why": "its journal does not begin with a session"}
    # A folder that was moved since says where it is now.
    return view | {"root": root, "folder": folder}


def list_index(index: str) -> list[tuple[str, str]]:
    """(session, root) of every entry of the user's index that can be read."""
    found = []
    try:
        names = sorted(os.listdir(index))
    except OSError:
        return []
    for name in names:
        session = name.removesuffix(".json")
        if not is_ulid(session):
            continue
        try:
            entry = parse_json(read_bounded(os.path.join(index, name), limit_bytes=_INDEX_BYTES))
        except (RelayError, OSError, ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("root"), str):
            found.append((session, entry["root"]))
    return found


def check_ledger(ledger: str) -> None:
    """Nothing where the ledger can be read, is not there, or is damaged, which counts as empty.

    Raises RelayError where nobody can tell who rests.
    """
    try:
        read_bounded(ledger, limit_bytes=_LEDGER_BYTES)
    except (FileNotFoundError, UntrustedDataError):
        return


def find_ledger_trouble(ledger: str) -> str:
    """Why nobody can tell who rests; empty where the ledger tells."""
    try:
        check_ledger(ledger)
    except RelayError as error:
        return error.sentence
    return ""


def read_resting(ledger: str) -> "list[dict[str, object]]":
    """The rests that last now: agent, model, scope, until (ISO 8601, empty where unknown) and evidence."""
    try:
        data = parse_json(read_bounded(ledger, limit_bytes=_LEDGER_BYTES))
    except (RelayError, OSError, ValueError, RecursionError):
        return []
    rows = data.get("rests") if isinstance(data, dict) else None
    found = [_rest(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [rest for rest in found if rest is not None]


def _rest(row: "Mapping[str, object]") -> "dict[str, object] | None":
    from datetime import UTC, datetime, timedelta

    keys = ("agent", "model", "scope", "until", "evidence", "seen_at")
    texts = {key: str(row.get(key) or "") for key in keys}
    try:
        if not texts["until"] and texts["scope"] != "billing":
            believed = datetime.fromisoformat(texts["seen_at"]) + timedelta(seconds=_BELIEVED_S)
            texts["until"] = believed.isoformat()
        if texts["until"] and datetime.fromisoformat(texts["until"]) <= datetime.now(UTC):
            return None
    except (ValueError, TypeError, OverflowError):
        return None
    return {key: value for key, value in texts.items() if key != "seen_at"}


def _read_rows(data: bytes) -> "Iterator[dict[str, object]]":
    """The lines that were written whole; one that is no object is history somebody damaged, and skipped."""
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            row = parse_json(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _sort(views: "list[dict[str, object]]") -> "list[dict[str, object]]":
    return sorted(views, key=lambda view: str(view["updated_at"]), reverse=True)
