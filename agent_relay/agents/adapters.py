"""One adapter on disk: loaded and checked; and whether its agent is installed and signed in here."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from agent_relay.agents.adapter_folders import ADAPTER_FILE
from agent_relay.agents.agent_versions import find_installed_version
from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.values.ids import AgentName
from agent_relay.system.config.toml_document import parse_document, read_toml
from agent_relay.system.spawn import keep_absolute

RULES_FILE = "rules.toml"
SCRIPTED = "scripted"
"""The capability of agents that only play a screenplay; nobody is handed to them unasked."""

Origin = Literal["built-in", "user", "project"]


@dataclass(frozen=True, slots=True)
class LoadedAdapter:
    """An adapter with the folder its templates and rules are read from.

    `version` is the installed one that the adapter was fitted to, empty if it was not fitted.
    """

    adapter: Adapter
    folder: str
    rules_path: str
    origin: Origin
    version: str = ""


def load_adapter(folder: str, *, origin: Origin = "user") -> LoadedAdapter:
    """Load the adapter in one folder, whose name is the agent's. Raises ConfigurationError."""
    path = os.path.join(folder, ADAPTER_FILE)
    try:
        adapter = parse_document(read_toml(path), Adapter, path)
    except FileNotFoundError:
        raise ConfigurationError(f"{folder} is not an adapter: it has no {ADAPTER_FILE}") from None
    if adapter.name != os.path.basename(folder):
        raise ConfigurationError(f"{path}: name: {adapter.name!r} is not the name of its folder")
    return LoadedAdapter(adapter, folder, os.path.join(folder, RULES_FILE), origin)


def list_default_roster(adapters: Mapping[AgentName, LoadedAdapter]) -> tuple[str, ...]:
    """Return the roster if neither user nor project sets one: all but the scripted agents, by name."""
    return tuple(name for name, found in adapters.items() if SCRIPTED not in found.adapter.capabilities)


def find_program(loaded: LoadedAdapter, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of the agent's program, `None` if it is not installed.

    A program written `./name` or `../other/name` is found from the adapter's own folder; any other is
    looked up in the absolute folders of `PATH`.
    """
    program = loaded.adapter.launch.program
    if program.startswith(("./", "../")):
        program = os.path.normpath(os.path.join(loaded.folder, program))
    found = shutil.which(program, path=keep_absolute(environ.get("PATH", os.defpath)))
    return os.path.abspath(found) if found else None


def fit_installed(loaded: LoadedAdapter, environ: Mapping[str, str], known: str) -> LoadedAdapter:
    """Return the adapter fitted to the version `find_installed_version` finds, also in `known`."""
    program = find_program(loaded, environ)
    package = loaded.adapter.package
    version = find_installed_version(program, package, known) if program is not None else ""
    return replace(loaded, adapter=loaded.adapter.fit(version), version=version)


def is_signed_in(adapter: Adapter, environ: Mapping[str, str], home: str) -> bool:
    """Return whether the agent probably can reach its provider: a key or its sign-in file exists.

    Only names are looked at; no credential is read. An agent that names neither needs neither. The paths may
    have `{home}`, `{NAME:-default}` and a leading `~/`; relative ones are the home's.
    """
    if not adapter.keys and not adapter.sign_in_files:
        return True
    if any(environ.get(name) for name in adapter.keys):
        return True
    return any(_exists(path, environ, home) for path in adapter.sign_in_files)


def _exists(path: str, environ: Mapping[str, str], home: str) -> bool:
    try:
        filled = fill_text(path, {"home": home}, environ)
    except ConfigurationError:
        return False
    return filled is not None and os.path.exists(os.path.join(home, filled.removeprefix("~/")))
