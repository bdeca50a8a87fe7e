"""The files and folders beside the agents' own that figures are made of, by their paths."""

import os
import sys
from collections.abc import Iterator, Mapping

from agent_relay.system.adapter_places import find_trust_list, project_adapters, user_adapters
from agent_relay.system.folders import Folders
from agent_relay.system.places import find_builtin_folder
from agent_relay.system.session_index import list_index

_PROGRAMS = ("agent_relay", "genai_prices")


class Looked(Mapping[str, str]):
    """Variables of an environment, and the names of those that were asked for."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


def list_looked(folders: Folders, root: str) -> list[str]:
    """What tells which sessions there are and how agents' files are read; also what is not there."""
    own = os.path.join(root, ".agent-relay")
    places = (find_builtin_folder(), user_adapters(folders.config), project_adapters(root))
    index = [os.path.join(folders.sessions, f"{session}.json") for session, _ in list_index(folders.sessions)]
    return [
        *(own, os.path.join(own, "sessions"), folders.sessions, *index, find_trust_list(folders.state)),
        *(path for place in places for path in _list_below(place)),
        *_list_programs(),
    ]


def _list_below(place: str) -> Iterator[str]:
    """Everything in a folder, and in those its links lead to, none of them twice."""
    yield place
    seen = set[str]()
    for folder, below, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            below.clear()
            continue
        seen.add(real)
        yield from (os.path.join(folder, name) for name in (*below, *names))


def _list_programs() -> list[str]:
    """The modules that made the figures: another version of one may make others."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _PROGRAMS]
    return [path for module in modules if (path := getattr(module, "__file__", None))]
