"""List the adapters of a user and a project: usable ones, those left out, and which a project may use."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator

import msgspec

from agent_relay.agents import adapter_folders
from agent_relay.agents.adapters import (
    LoadedAdapter,
    Origin,
    build_renderer,
    list_default_roster,
    load_adapter,
    load_rules,
)
from agent_relay.domain.errors import ConfigurationError, RelayError, WrongUseError
from agent_relay.domain.values import AgentName
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.folders import Folders, ensure_private
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
    with lock_folder(state, f"another command is changing {adapter_folders.find_trust_list(state)}"):
        known = {**_read_trust(state), os.path.abspath(folder): fingerprint}
        write_atomic(
            adapter_folders.find_trust_list(state), json.dumps(known, indent=1, sort_keys=True).encode()
        )
    return fingerprint


def _read_trust(state: str) -> dict[str, str]:
    try:
        data = json.loads(read_bounded(adapter_folders.find_trust_list(state), limit_bytes=_FILE_BYTES))
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


class BrokenAdapter(msgspec.Struct, frozen=True):
    """An adapter that is left out.

    `name` is its folder's, empty for a place that cannot be listed; `sentence` names file, key and error.
    """

    name: str
    sentence: str
    hint: str = ""


class AdapterCatalog(msgspec.Struct, frozen=True):
    """The adapters that can be used, by agent and sorted, and those that are left out."""

    adapters: dict[AgentName, LoadedAdapter]
    broken: tuple[BrokenAdapter, ...] = ()

    def __contains__(self, agent: object) -> bool:
        """Return whether an adapter has this name, left out or not."""
        return agent in self.adapters or any(agent == one.name for one in self.broken)

    def get(self, agent: str) -> LoadedAdapter:
        """Return the agent's adapter.

        Raise ConfigurationError for one that is left out, WrongUseError for an unknown name.
        """
        found = self.adapters.get(AgentName(agent))
        if found is not None:
            return found
        for one in self.broken:
            if one.name == agent:
                raise ConfigurationError(one.sentence, hint=one.hint)
        known = ", ".join(list_default_roster(self.adapters) or self.adapters)
        raise WrongUseError(f"there is no agent {agent[:40]!r}", hint=f"Known: {known}")


def load_adapters(folders: Folders, *, root: str = "") -> dict[AgentName, LoadedAdapter]:
    """Return every adapter that can be used, by its agent's name; see `read_catalog`."""
    return read_catalog(folders, root=root).adapters


def read_catalog(folders: Folders, *, root: str = "") -> AdapterCatalog:
    """Return every adapter by its agent's name, sorted; a later place replaces an earlier one whole.

    The places: built-in, the user's config folder, and `<root>/.agent-relay/adapters/` if the user
    trusted exactly its present contents. An adapter of the user's or a project's that cannot be used is left
    out, and so is one it would have replaced: whoever changed how an agent is started does not want it
    started the old way. Raise ConfigurationError if one of ours cannot be read.
    """
    place = adapter_folders.find_builtin_folder()
    found = {AgentName(name): _load_builtin(place, name) for name in adapter_folders.list_folders(place)}
    broken: dict[str, BrokenAdapter] = {}
    for origin, name, folder in _list_others(folders, root, broken):
        found.pop(AgentName(name), None)
        broken.pop(name, None)
        try:
            found[AgentName(name)] = _check_parts(load_adapter(folder, origin=origin))
        except RelayError as error:
            broken[name] = BrokenAdapter(name, error.sentence, error.hint)
    return AdapterCatalog(dict(sorted(found.items())), tuple(broken.values()))


def _load_builtin(place: str, name: str) -> LoadedAdapter:
    return load_adapter(os.path.join(place, name), origin="built-in")


def _list_others(
    folders: Folders, root: str, broken: dict[str, BrokenAdapter]
) -> Iterator[tuple[Origin, str, str]]:
    """Yield origin, name, folder of every adapter that is not ours; add unlistable places to `broken`."""
    places: list[tuple[Origin, str]] = [("user", adapter_folders.user_adapters(folders.config))]
    if root:
        try:
            trusted = find_trusted(adapter_folders.project_adapters(root), state=folders.state)
        except RelayError as error:
            broken[""] = BrokenAdapter("", error.sentence, error.hint)
            trusted = None
        if trusted:
            places.append(("project", trusted))
    for origin, place in places:
        try:
            names = adapter_folders.list_folders(place)
        except ConfigurationError as error:
            broken[place] = BrokenAdapter("", error.sentence, error.hint)
            continue
        for name in names:
            yield origin, name, os.path.join(place, name)


def _check_parts(loaded: LoadedAdapter) -> LoadedAdapter:
    """Check that the rules and packet template of `loaded` can be used; return it unchanged.

    Raise ConfigurationError if not. Both are first needed at a handoff, when it is too late to ask the person
    who wrote them.
    """
    load_rules(loaded)
    if adapter_folders.has_template(loaded.folder, loaded.adapter.template):
        build_renderer(loaded, loaded.folder)
    return loaded
