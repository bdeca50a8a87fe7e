"""All adapters of a user and a project: those that can be used, and those left out, with the reason."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from agent_relay.agents.adapter_folders import (
    find_builtin_folder,
    list_folders,
    project_adapters,
    user_adapters,
)
from agent_relay.agents.adapters import LoadedAdapter, Origin, list_default_roster, load_adapter
from agent_relay.agents.rules import load_rules
from agent_relay.agents.trust import find_trusted
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import ConfigurationError, RelayError, WrongUseError
from agent_relay.domain.values.ids import AgentName
from agent_relay.system.disk.folders import Folders


@dataclass(frozen=True, slots=True)
class BrokenAdapter:
    """An adapter that is left out.

    `name` is its folder's, empty for a place that cannot be listed; `sentence` names file, key and error.
    """

    name: str
    sentence: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AdapterCatalog:
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
    place = find_builtin_folder()
    found = {AgentName(name): _load_builtin(place, name) for name in list_folders(place)}
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
    places: list[tuple[Origin, str]] = [("user", user_adapters(folders.config))]
    if root:
        try:
            trusted = find_trusted(project_adapters(root), state=folders.state)
        except RelayError as error:
            broken[""] = BrokenAdapter("", error.sentence, error.hint)
            trusted = None
        if trusted:
            places.append(("project", trusted))
    for origin, place in places:
        try:
            names = list_folders(place)
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
    template = loaded.adapter.template
    if template != Adapter.model_fields["template"].default or os.path.lexists(
        os.path.join(loaded.folder, template)
    ):
        from agent_relay.agents.packet_template import build_renderer

        build_renderer(loaded, loaded.folder)
    return loaded
