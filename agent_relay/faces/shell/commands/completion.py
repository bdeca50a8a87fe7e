"""What Tab offers: commands, agents, sessions, and paths behind an @."""

import os
from collections.abc import Iterable, Iterator
from heapq import nsmallest

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.faces.cli.commands import SHELL_COMMANDS, Command
from agent_relay.faces.render.output import plain
from agent_relay.store.session_index import list_named
from agent_relay.system.disk.folders import Folders

_MOST = 200


class ShellCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, folders: Folders, cwd: str) -> None:
        self._folders = folders
        self._cwd = cwd

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions, best first; none in prose."""
        del complete_event
        before = document.text_before_cursor
        word = before.split("\n")[-1].rpartition(" ")[2]
        if word.startswith("@"):
            return _complete_path(word[1:], self._cwd)
        if before.startswith("/"):
            return self._complete_command(before)
        return ()

    def _complete_command(self, before: str) -> Iterator[Completion]:
        name, space, rest = before[1:].partition(" ")
        if not space:
            for command in SHELL_COMMANDS.values():
                if command.name.startswith(name):
                    about = command.shell_form.about
                    yield Completion(f"/{command.name}", start_position=-len(before), display_meta=about)
            return
        known = SHELL_COMMANDS.get(name)
        if known is None or (" " in rest and known.name != "order"):
            return
        word = rest.rpartition(" ")[2]
        for choice in self._list_choices(known):
            if choice.lower().startswith(word.lower()):
                yield Completion(choice, start_position=-len(word))

    def _list_choices(self, command: Command) -> Iterable[str]:
        match command.shell_form.completes:
            case "agent":
                return _list_agents(self._folders)
            case "session":
                return list_named(self._folders.sessions)[::-1]
            case "word":
                return command.words
            case "command":
                return SHELL_COMMANDS
            case _:
                return ()


def _list_agents(folders: Folders) -> list[str]:
    """Return the names of the adapters the user has; only the daemon reads and checks them."""
    found = set()
    for place in (find_builtin_folder(), os.path.join(folders.config, "adapters")):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        found |= {name for name in names if os.path.isfile(os.path.join(place, name, "adapter.toml"))}
    return sorted(found)


def _complete_path(word: str, cwd: str) -> Iterator[Completion]:
    folder, _, name = word.rpartition("/")
    place = os.path.join(cwd, os.path.expanduser(f"{folder}/" if folder or word.startswith("/") else ""))
    try:
        with os.scandir(place) as entries:
            names = (entry.name for entry in entries)
            shown = (one for one in names if one.startswith(name) and (name or not one.startswith(".")))
            found = nsmallest(_MOST, (one for one in shown if one.isprintable()))
    except (OSError, ValueError):
        # A NUL in the word is no name of anything either.
        return
    for entry in found:
        is_folder = os.path.isdir(os.path.join(place, entry))
        yield Completion(entry + ("/" if is_folder else ""), start_position=-len(name), display=plain(entry))
