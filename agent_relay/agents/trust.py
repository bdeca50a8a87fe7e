"""Trust in adapters that came with a repository: granted to exact contents, never to a path alone."""

import hashlib
import json
import os
import stat

from agent_relay.agents.adapter_folders import find_trust_list
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.disk.locks import lock_folder

_FILE_BYTES = 1 << 20
_TOTAL_FILES = 200


def fingerprint_folder(folder: str) -> tuple[str, dict[str, bytes]]:
    """Return the SHA-256 of names and contents of all files below `folder`, and the contents by path.

    Paths are relative. Raises ConfigurationError if the folder holds anything but folders and regular files
    of reasonable size and number: what cannot be shown to the user whole cannot be trusted.
    """
    files: dict[str, bytes] = {}
    _collect(folder, "", files)
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (os.fsencode(name), files[name]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest(), files


def find_trusted(folder: str, *, state: str) -> str | None:
    """Return our copy of `folder` as the user trusted it; `None` if it was never trusted or has changed.

    A copy, so that nothing can be exchanged between the check and the use.
    """
    wanted = _read_trust(state).get(os.path.abspath(folder))
    if wanted is None or not os.path.isdir(folder):
        return None
    try:
        found, _ = fingerprint_folder(folder)
    except RelayError:
        return None
    copy = os.path.join(state, "trusted", wanted)
    return copy if found == wanted and os.path.isdir(copy) else None


def trust_folder(folder: str, *, state: str, shown: str = "") -> str:
    """Trust `folder` exactly as it is from now on, and return its fingerprint.

    `shown` is the fingerprint of what the user was shown, if they were asked. Raises ConfigurationError if
    there is nothing to trust, it cannot be read whole, or is not what was shown.
    """
    fingerprint, files = fingerprint_folder(folder)
    if shown and fingerprint != shown:
        raise ConfigurationError(
            f"{folder} was changed while you were asked, so nothing is trusted",
            hint="Look again: agent-relay adapters trust",
        )
    if not files:
        raise ConfigurationError(f"{folder} holds no adapters")
    copy = os.path.join(ensure_private(os.path.join(ensure_private(state), "trusted")), fingerprint)
    for name, contents in files.items():
        target = os.path.join(copy, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        write_atomic(target, contents, mode=0o700 if contents.startswith(b"#!") else 0o600)
    with lock_folder(state, f"another command is changing {find_trust_list(state)}"):
        known = {**_read_trust(state), os.path.abspath(folder): fingerprint}
        write_atomic(find_trust_list(state), json.dumps(known, indent=1, sort_keys=True).encode())
    return fingerprint


def _read_trust(state: str) -> dict[str, str]:
    try:
        data = json.loads(read_bounded(find_trust_list(state), limit_bytes=_FILE_BYTES))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        # A torn list trusts nobody: the user is asked again, nothing worse.
        return {}
    if not isinstance(data, dict):
        return {}
    return {path: value for path, value in data.items() if isinstance(value, str)}


def _collect(folder: str, below: str, files: dict[str, bytes]) -> None:
    try:
        with os.scandir(os.path.join(folder, below)) as entries:
            found = sorted((entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in entries)
    except OSError as error:
        raise ConfigurationError(f"cannot read {folder}: {error.strerror}") from error
    for name, mode in found:
        path = os.path.join(below, name)
        if stat.S_ISDIR(mode):
            _collect(folder, path, files)
        elif stat.S_ISREG(mode):
            files[path] = read_bounded(os.path.join(folder, path), limit_bytes=_FILE_BYTES)
        else:
            raise ConfigurationError(f"{os.path.join(folder, path)} is neither a file nor a folder")
        if len(files) > _TOTAL_FILES:
            raise ConfigurationError(f"{folder} holds more than {_TOTAL_FILES} files")
