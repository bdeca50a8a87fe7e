"""Remove whole folders, even read-only ones and ones being written to; and temporary files of crashes."""

import contextlib
import os
import shutil

from agent_relay.domain.errors import RelayError

_REMOVALS = 5


def remove_tree(path: str) -> None:
    """Remove whatever is at `path` with all that is in it; do not follow links.

    If another process still writes into it, try again a few times. Raise RelayError.
    """
    for attempt in range(_REMOVALS):
        try:
            if os.path.islink(path) or os.path.isfile(path):
                return os.unlink(path)
            return shutil.rmtree(path)
        except (FileNotFoundError, NotADirectoryError):
            if not os.path.lexists(path):
                return None
        except OSError as error:
            if attempt == _REMOVALS - 1:
                raise RelayError(f"cannot remove {path}: {error.strerror}") from error
            _open_folders(path)
    return None


def _open_folders(path: str) -> None:
    """Make every folder below writable, so that it can be emptied: build tools write-protect their caches."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                if not os.path.islink(inner := os.path.join(folder, name)):
                    os.chmod(inner, 0o700)


def sweep_unfinished(folder: str) -> None:
    """Remove what killed processes began to write in `folder`; leave what a living one writes.

    A folder that does not exist or that cannot be read or changed is left as it is.
    """
    with contextlib.suppress(OSError):
        # Nearly all that stands there is something else, in the index of sessions ten thousand entries.
        for name in [name for name in os.listdir(folder) if name.startswith(".tmp-")]:
            mark, _, rest = name.partition("-")
            pid, _, chance = rest.partition("-")
            # As `write_atomic` names what it has not finished: by the process that writes it.
            if mark == ".tmp" and pid.isdecimal() and chance.isalnum() and not os.path.exists(f"/proc/{pid}"):
                os.unlink(os.path.join(folder, name))
