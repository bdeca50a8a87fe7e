"""Find the user's sessions by the index and summarize each from its journal, quickly and without a daemon."""

import os

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.names import get_journal_path, get_session_folder, get_sessions_folder, is_ulid
from agent_relay.domain.protocol.json_text import parse_line
from agent_relay.session.views.summary import begin_summary, summarize
from agent_relay.system.disk.files import cannot_write, read_bounded, read_object, write_atomic
from agent_relay.system.disk.folders import ensure_private

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENTRY = ".json"
_ENDED = "ended"
_ENTRY_BYTES = 64 << 10


def list_index(index: str) -> list[tuple[str, str]]:
    """Return (session, root) of every readable entry of the user's `index` folder, oldest session first."""
    found = ((name, find_root(index, name)) for name in list_named(index))
    return [(session, root) for session, root in found if root]


def list_named(index: str) -> list[str]:
    """Return every session the index has an entry of, oldest first; opens no file."""
    return sorted(_list_entries(index))


def list_unended(index: str) -> list[str]:
    """Return the sessions not known to have ended, oldest first; opens no file."""
    return sorted(_list_entries(index) - list_ended(index))


def list_ended(index: str) -> set[str]:
    """Return the sessions known to have ended; opens no file."""
    try:
        return set(os.listdir(os.path.join(index, _ENDED)))
    except OSError:
        return set()


def find_root(index: str, session: str) -> str:
    """Return the absolute path of the root the entry names; empty if no entry can be read."""
    if not is_ulid(session):
        return ""
    root = read_object(_get_path(index, session), limit_bytes=_ENTRY_BYTES).get("root")
    return root if isinstance(root, str) and os.path.isabs(root) else ""


def check_session_id(session: str) -> None:
    """Raise UntrustedDataError if it is no session's id, which might lead out of the folder of sessions."""
    if not is_ulid(session):
        raise UntrustedDataError("this is not a session id, which has 26 letters and digits")


def has_entry(index: str, session: str) -> bool:
    """Tell whether the index has an entry of the session, readable or not."""
    return os.path.lexists(_get_path(index, session))


def write_entry(index: str, session: str, *, root: str, cwd: str) -> None:
    """Name the session in the index. Raise RelayError if the disk refuses."""
    check_session_id(session)
    import json  # dear, and only what reads must be quick

    ensure_private(os.path.dirname(index))
    ensure_private(index)
    entry = json.dumps({"root": root, "cwd": cwd}).encode()
    write_atomic(_get_path(index, session), entry, durable=False)


def remove_entry(index: str, session: str) -> None:
    """Remove the session from the index; harmless when repeated. Raise RelayError."""
    for path in (_get_mark(index, session), _get_path(index, session)):
        _unlink(path)


def mark_ended(index: str, session: str) -> None:
    """Mark the session as ended, so that its journal need not be read for that. Raise RelayError.

    Only for a session that has an entry, and of which nothing runs and nothing is left to clean up.
    """
    path = _get_mark(index, session)
    try:
        if not os.path.isdir(os.path.dirname(path)):
            ensure_private(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise cannot_write(path, error) from error


def unmark_ended(index: str, session: str) -> None:
    """Remove the mark before the session goes on: a crash would lose what ran under it. Raise RelayError."""
    _unlink(_get_mark(index, session))


def _list_entries(index: str) -> set[str]:
    """Return the sessions that have an entry."""
    try:
        names = os.listdir(index)
    except OSError:
        return set()
    return {name[: -len(_ENTRY)] for name in names if name.endswith(_ENTRY)}


def _get_path(index: str, session: str) -> str:
    return os.path.join(index, f"{session}{_ENTRY}")


def _get_mark(index: str, session: str) -> str:
    return os.path.join(index, _ENDED, session)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_write(path, error) from error


JOURNAL_BYTES = 256 << 20
_LEDGER_BYTES = 1 << 20


def find_near_root(cwd: str) -> str:
    """Return the folder whose `.agent-relay` belongs to `cwd`: the work tree around it, else `cwd` itself.

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


def read_sessions_at(root: str, index: str) -> "list[dict[str, object]]":
    """Return the user's sessions in one tree, newest change first; `unreadable` for a bad journal."""
    return _sort([read_summary(root, name) for name in list_own_at(root, index)])


def read_live_at(root: str, index: str) -> "list[dict[str, object]]":
    """Return the user's unended sessions in one tree; open no journal that the index marks as ended."""
    over = list_ended(index)
    views = [read_summary(root, name) for name in list_own_at(root, index) if name not in over]
    return _sort([view for view in views if view["state"] != "ended"])


def read_shown_at(root: str, index: str) -> "list[dict[str, object]]":
    """Return what `read_live_at` does, and the imported sessions that nobody has started."""
    over = list_ended(index)
    views = [read_summary(root, name) for name in list_own_at(root, index) if name not in over]
    return _sort([view for view in views if view["state"] != "ended" or is_unstarted(view)])


def is_unstarted(view: "Mapping[str, object]") -> bool:
    """Check whether a session was imported and waits to be started."""
    return view["state"] == "ended" and bool(view["owed"]) and not view["leg"]


def list_sessions_at(root: str) -> list[str]:
    """Return the ids of the sessions whose folders are in one working tree, whoever put them there."""
    try:
        names = os.listdir(get_sessions_folder(root))
    except OSError:
        return []
    return [name for name in names if is_ulid(name)]


def list_own_at(root: str, index: str) -> list[str]:
    """Return the user's own session ids in one tree: a clone may bring folders with forged sessions."""
    return [name for name in list_sessions_at(root) if is_own(root, index, name)]


def list_strangers_at(root: str, index: str) -> list[str]:
    """Return ids of sessions that came with the tree, oldest first: the user's index has them not there."""
    return sorted(name for name in list_sessions_at(root) if not is_own(root, index, name))


def list_moved_at(root: str, index: str) -> list[str]:
    """Return ids of sessions moved there with their repository and not known to have ended."""
    over = list_ended(index)
    return [name for name in list_sessions_at(root) if name not in over and was_moved(root, index, name)]


def was_moved(root: str, index: str, session: str) -> bool:
    """Tell whether the session's folder is in `root` and no longer where the user's index has it."""
    known = find_root(index, session)
    if not known or known == root or _is_same(known, root):
        return False
    there, here = get_session_folder(known, session), get_session_folder(root, session)
    return not os.path.lexists(there) and os.path.isdir(here)


def is_own(root: str, index: str, session: str) -> bool:
    """Tell whether the session is the user's: their index has it at `root`, or it was moved to `root`."""
    known = find_root(index, session)
    if not known or known == root:
        return bool(known)
    return _is_same(known, root) or was_moved(root, index, session)


def locate(index: str, session: str, *, near: str) -> str:
    """Return the root of the session's folder: `near` if it was moved there, else the one in the index."""
    return near if was_moved(near, index, session) else find_root(index, session)


def read_all_sessions(index: str) -> "list[dict[str, object]]":
    """Return the sessions of every working tree in the user's `index` folder, newest change first."""
    return _sort([read_summary(root, session) for session, root in list_index(index)])


def read_summary(root: str, session: str) -> "dict[str, object]":
    """Return a session's summary, as `session.views.summary` has it; or `state` `unreadable` or `gone`."""
    folder = get_session_folder(root, session)
    empty = begin_summary({"session": session, "root": root, "folder": folder}, "")
    try:
        data = read_bounded(get_journal_path(root, session), limit_bytes=JOURNAL_BYTES)
    except FileNotFoundError:
        return empty | {"state": "gone", "why": "its journal was deleted"}
    except RelayError as error:
        return empty | {"state": "unreadable", "why": error.sentence}
    view = summarize(_read_rows(data))
    if view is None:
        return empty | {"state": "unreadable", "why": "its journal does not begin with a session"}
    # A folder that was moved since says where it is now.
    return view | {"root": root, "folder": folder}


def check_ledger(ledger: str) -> None:
    """Do nothing if the ledger can be read, is missing, or is damaged, which counts as empty.

    Raises RelayError if it is unknown which agents rest.
    """
    try:
        read_bounded(ledger, limit_bytes=_LEDGER_BYTES)
    except (FileNotFoundError, UntrustedDataError):
        return


def find_ledger_trouble(ledger: str) -> str:
    """Return why it is unknown which agents rest; empty if the ledger can be read."""
    try:
        check_ledger(ledger)
    except RelayError as error:
        return error.sentence
    return ""


def read_resting(ledger: str) -> "list[dict[str, object]]":
    """Return the rests that last: agent, model, scope, until (ISO 8601, empty if unknown) and evidence."""
    rows = read_object(ledger, limit_bytes=_LEDGER_BYTES).get("rests")
    found = [_rest(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [rest for rest in found if rest is not None]


def find_last_rest(rests: "list[dict[str, object]]", agent: str) -> "dict[str, object] | None":
    """Return the agent's rest that ends last, of those `read_resting` returns; `None` if it may work."""
    from datetime import datetime

    own = [rest for rest in rests if rest["agent"] == agent]
    endless = next((rest for rest in own if not rest["until"]), None)
    return endless or max(own, key=lambda rest: datetime.fromisoformat(str(rest["until"])), default=None)


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        # What a request or a damaged file names may be no name at all: NUL, or half a surrogate pair.
        return False


def _rest(row: "Mapping[str, object]") -> "dict[str, object] | None":
    from datetime import UTC, datetime

    from agent_relay.domain.moments import find_end, is_lasting

    keys = ("agent", "model", "scope", "until", "evidence", "seen_at")
    texts = {key: str(row.get(key) or "") for key in keys}
    try:
        until = datetime.fromisoformat(texts["until"]) if texts["until"] else None
        seen_at = datetime.fromisoformat(texts.pop("seen_at"))
        end, assumed = find_end(until, texts["scope"], seen_at)
        if not is_lasting(end, seen_at, datetime.now(UTC)):
            return None
    except (ValueError, TypeError, OverflowError):
        return None
    return {**texts, "until": end.isoformat() if end is not None else "", "assumed": assumed}


def _read_rows(data: bytes) -> "Iterator[dict[str, object]]":
    """Yield the lines that were written whole; skip those that are no object, which is damage."""
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            row = parse_line(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _sort(views: "list[dict[str, object]]") -> "list[dict[str, object]]":
    return sorted(views, key=lambda view: str(view["updated_at"]), reverse=True)
