"""Find adapters: shipped with this installation, in the user's configuration, or in a project.

Folders are named after their agents. Ours are the wheel's data folders, else the checkout's; so is the
example of a project's folder. Hot commands load this: it imports nothing heavy.
"""

import os

from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.names import get_project_folder

ADAPTER_FILE = "adapter.toml"
TEMPLATE = "resume.md.j2"
"""The packet template that all adapters without one of their own share."""
_TRUST_FILE = "trust.json"


def project_adapters(root: str) -> str:
    """Return the folder of a project's own adapters."""
    return f"{get_project_folder(root)}/adapters"


def has_template(folder: str, template: str) -> bool:
    """Tell whether the adapter in `folder` that names this template has one of its own, or should have."""
    return template != TEMPLATE or os.path.lexists(os.path.join(folder, template))


def user_adapters(config: str) -> str:
    """Return the folder of the user's own adapters, in our configuration folder."""
    return os.path.join(config, "adapters")


def find_trust_list(state: str) -> str:
    """Return the path of the list of what the user trusted."""
    return os.path.join(state, _TRUST_FILE)


def list_folders(place: str) -> list[str]:
    """Return the names of the adapters' folders at `place`, sorted. Raises ConfigurationError."""
    try:
        with os.scandir(place) as entries:
            return sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith((".", "_")) and _is_folder(entry) and _has_files(entry.path)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigurationError(f"cannot list the adapters in {place}: {error.strerror}") from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether it may be an adapter; a broken link may: reading the adapter reports it."""
    try:
        return entry.is_dir()
    except OSError:
        return True


def _has_files(folder: str) -> bool:
    """Return whether the folder holds anything; an empty one is no adapter and no error.

    An interrupted copy or a cleaned checkout leaves empty folders. A folder that may not be listed counts as
    an adapter: reading it reports the error.
    """
    try:
        with os.scandir(folder) as entries:
            return any(not entry.name.startswith(".") for entry in entries)
    except OSError:
        return True


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_builtin_folder() -> str:
    """Return the folder of the shipped adapters; raise ConfigurationError if there is none."""
    return _find("_adapters", "adapters")


def find_example_folder() -> str:
    """Return a project's folder as it is after one handoff; raise ConfigurationError if missing."""
    return _find("_example", ".agent-relay.example")


def _find(in_wheel: str, in_checkout: str) -> str:
    for folder in (os.path.join(_PACKAGE, in_wheel), os.path.join(os.path.dirname(_PACKAGE), in_checkout)):
        if os.path.isdir(folder):
            return folder
    raise ConfigurationError(f"this installation lacks its {in_checkout}", hint="Install agent-relay again.")
