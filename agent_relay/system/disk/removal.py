"""Remove folders whole, read-only ones too and while somebody writes into them; and what crashes left."""

import contextlib
import os
import shutil

from agent_relay.domain.errors import RelayError

_REMOVALS = 5


def remove_tree(path: str) -> None:
    """Whatever was at `path` is gone with all that is in it; links are not followed.

    Whoever still writes into it is outrun a few times. Raises RelayError.
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
    """Every folder below may be emptied: build tools write-protect their caches."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                if not os.path.islink(inner := os.path.join(folder, name)):
                    os.chmod(inner, 0o700)


def sweep_unfinished(folder: str) -> None:
    """What killed processes began to write in `folder` is gone; what a living one writes stays.

    A folder that is not there or that cannot be read or changed is left as it is.
    """
    with contextlib.suppress(OSError):
        # Nearly all that stands there is something else, in the index of sessions ten thousand entries.
        for name in [name for name in os.listdir(folder) if name.startswith(".tmp-")]:
            mark, _, rest = name.partition("-")
            pid, _, chance = rest.partition("-")
            # As `write_atomic` names what it has not finished: by the process that writes it.
            if mark == ".tmp" and pid.isdecimal() and chance.isalnum() and not os.path.exists(f"/proc/{pid}"):
                os.unlink(os.path.join(folder, name))
