"""Gather the secret values of this user and project, so that they can be redacted wherever they occur."""

import os
import stat
from collections.abc import Mapping

from agent_relay.domain.errors import RelayError
from agent_relay.redact.known_values import collect_known, parse_settings
from agent_relay.system.disk.files import read_bounded

_FILE_BYTES = 256 << 10
_MOST_FILES = 20
_MOST_VALUES = 2000
# These are committed and show the names with values nobody uses.
_SHOWN = (".example", ".sample", ".template", ".dist", ".defaults")


def gather_secrets(root: str, environ: Mapping[str, str], *, cwd: str = "") -> frozenset[str]:
    """Return secret values of `environ` and of the `.env` files directly in `root` and `cwd` (empty: none).

    What cannot be read is skipped; at most 20 files of 256 KiB are read in each folder.
    """
    known = set(collect_known(environ.items(), from_file=False))
    for folder in dict.fromkeys(path for path in (root, cwd) if path):
        for path in _find_files(folder):
            try:
                text = read_bounded(path, limit_bytes=_FILE_BYTES).decode("utf-8", "replace")
            except (OSError, RelayError):
                continue
            known |= collect_known(parse_settings(text), from_file=True)
    longest_first = sorted(known, key=lambda value: (-len(value), value))
    return frozenset(longest_first[:_MOST_VALUES])


def _find_files(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = [
        os.path.join(folder, name)
        for name in names
        if (name.startswith(".env") or name.endswith(".env")) and not name.endswith(_SHOWN)
    ]
    return [path for path in found if _is_file(path)][:_MOST_FILES]


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
