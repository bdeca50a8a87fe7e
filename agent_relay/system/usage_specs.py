"""Where each agent's records of what it used are, as its adapter says; imports no more than that needs."""

import os
import tomllib

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.system.adapter_places import ADAPTER_FILE, list_folders, project_adapters, user_adapters
from agent_relay.system.files import read_bounded
from agent_relay.system.folders import Folders
from agent_relay.system.places import find_builtin_folder
from agent_relay.system.usage_files import UsageSpec

_LIMIT_BYTES = 1 << 20


class _Transcript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An adapter's table of this name, as `domain.adapter` has it."""

    reader: str
    folder: str
    pattern: str
    usage: tuple[str, ...] = ()
    held_open: bool = False


class _Adapter(msgspec.Struct):
    """What of an adapter says where its records are."""

    transcript: _Transcript | None = None


def load_specs(folders: Folders, *, root: str, problems: list[str]) -> dict[str, UsageSpec]:
    """Return them by agent, of all `load_adapters` would give, in its order.

    Adapters that come with us were checked before they came. Where there are others, all are checked, and
    `problems` gets a sentence for each that is left out: figures without its records are not whole.
    """
    if _is_there(user_adapters(folders.config)) or _is_there(project_adapters(root)):
        return _load_checked(folders, root, problems)
    found: dict[str, UsageSpec] = {}
    place = find_builtin_folder()
    for name in list_folders(place):
        try:
            text = read_bounded(os.path.join(place, name, ADAPTER_FILE), limit_bytes=_LIMIT_BYTES).decode()
            spec = msgspec.convert(tomllib.loads(_cut_table(text)), _Adapter).transcript
        except (OSError, ValueError, RelayError, RecursionError):
            return _load_checked(folders, root, problems)
        if spec is not None:
            found[name] = spec
    return found


def _cut_table(text: str) -> str:
    """The table of the transcript alone, as ours are written: all of one is dear to parse."""
    _, head, rest = text.partition("\n[transcript]\n")
    return head + rest.partition("\n[")[0]


def _load_checked(folders: Folders, root: str, problems: list[str]) -> dict[str, UsageSpec]:
    from agent_relay.system.adapter_catalog import read_catalog

    catalog = read_catalog(folders, root=root)
    problems += [f"an adapter is left out: {one.sentence}" for one in catalog.broken]
    found = catalog.adapters.items()
    return {str(name): one.adapter.transcript for name, one in found if one.adapter.transcript}


def _is_there(place: str) -> bool:
    """Whether anything is, or nobody can tell."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
