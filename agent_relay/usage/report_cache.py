"""Cache finished reports with the state of every file they were made of: repeated questions are cheap.

The cache may be deleted at any time. A hot command reads it, so this imports nothing heavy.
"""

import os
import time

from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.quick_json import parse_json, render_json
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.folders import check_private, ensure_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_relay.usage.scan.files import Found

_PLACES = 61
"""The most reports that are kept; another question may take the place of one."""
_REPORT_BYTES = 1 << 20
_FILE_BYTES = 16 << 20
_MOST_PATHS = 50_000
YOUNG_NS = 2_000_000_000
"""A file changed so shortly before may change again without its time stamp showing it."""
_VARIABLES = (
    "HOME", "TZ", "COLUMNS", "AGENT_RELAY_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME", "TZDIR",
)  # fmt: skip
_ZONE = "/etc/localtime"


def find_report(folder: str, question: str) -> str:
    """Return the report kept for `question` if nothing it was made of has changed; empty for none.

    A report of another day does not count: the newest known price depends on it.
    """
    try:
        check_private(folder)
        kept = parse_json(read_bounded(_place(folder, question), limit_bytes=_FILE_BYTES))
    except (RelayError, OSError, ValueError, RecursionError):
        return ""
    if not isinstance(kept, dict) or kept.get("question") != question or kept.get("day") != _today():
        return ""
    if kept.get("program") != __file__:
        # Another installation's, of another version perhaps, whose own files are as they were.
        return ""
    variables, states, report = kept.get("variables"), kept.get("states"), kept.get("report")
    places = kept.get("places")
    if not isinstance(places, dict):
        return ""
    if not isinstance(variables, dict) or not isinstance(states, dict) or not isinstance(report, str):
        return ""
    get = os.environ.get
    is_same = all(get(name) == value for name, value in variables.items())
    is_same = is_same and all(_look(path) == state for path, state in states.items())
    return report if is_same and all(_resolve(path) == real for path, real in places.items()) else ""


def keep_report(
    folder: str,
    question: str,
    report: str,
    *,
    paths: "Iterable[str]",
    found: "Iterable[Found]" = (),
    names: "Iterable[str]",
    began_ns: int,
    places: "Mapping[str, str] | None" = None,
) -> None:
    """Keep `report` for `question`, unless that cannot be done or something it was made of is too young.

    `paths` are the files and folders it was made of, also those that did not exist, and `found` files in the
    state they were read in; `names` the variables of the environment; `began_ns` is when the first of them
    was looked at, on the clock of files. `places` are paths with what they resolved to.
    """
    states = {path: _look(path) for path in paths}
    states |= {one.path: [one.inode, one.size, *one.changed] for one in found}
    young_ns = began_ns - YOUNG_NS
    is_young = any(state is not None and max(state[2:]) >= young_ns for state in states.values())
    if is_young or len(report) > _REPORT_BYTES or len(states) > _MOST_PATHS:
        return
    kept = {
        "question": question,
        "day": _today(),
        "program": __file__,
        "variables": {name: os.environ.get(name) for name in (*_VARIABLES, *names)},
        "places": dict(places or {}),
        "states": states | {_ZONE: _look(_ZONE)},
        "report": report,
    }
    try:
        data = render_json(kept).encode()
        if len(data) <= _FILE_BYTES:
            write_atomic(_place(ensure_private(folder), question), data, durable=False)
    except (RelayError, OSError, ValueError):
        return


def _look(path: str) -> "list[int] | None":
    """Return the state that changes with a file or folder; `None` if it does not exist or cannot be seen."""
    try:
        known = os.stat(path)
    except (OSError, ValueError):
        return None
    return [known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns]


def _resolve(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return ""


def _place(folder: str, question: str) -> str:
    return os.path.join(folder, f"{int.from_bytes(question.encode(), 'big') % _PLACES:02}.json")


def _today() -> str:
    return "{}-{}-{}".format(*time.gmtime()[:3])
