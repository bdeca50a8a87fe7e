"""Find, read and change our hooks in the configuration files of agents, for agents that relay did not start.

A hook of ours is known by the end of its command. That also says how much of the file had to be made for it,
so that nothing else is needed to leave the file as it was, whatever its user changed meanwhile.
"""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from agent_relay.agents import _json_edits as edits
from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.agent_configuration import Hooks
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.values import AgentName
from agent_relay.system.config_file import read_text, write_config
from agent_relay.system.disk.files import cannot_write
from agent_relay.system.disk.locks import lock_folder

Scope = Literal["user", "project"]
HookState = Literal["absent", "installed", "other", "gone", "unreadable"]
_MARK = "# owned by agent-relay, made="
_MARKED = re.compile(r"# owned by agent-relay, made=([0-4])$")
_TABLE = "hooks"
_FILE, _FOLDER = 3, 4
"""The levels created for a hook: a list is 1, the object of the events 2."""


class HookFile(msgspec.Struct, frozen=True):
    """One configuration file of an agent in which our hooks may be; nothing need be there."""

    agent: str
    scope: Scope
    path: str
    hooks: Hooks


class HookStatus(msgspec.Struct, frozen=True):
    """The state of relay's hooks in a file.

    `other` hooks belong to another installation, at `program`, `gone` ones to one that is no longer there.
    `why` is why the file cannot be read.
    """

    file: HookFile
    state: HookState
    program: str = ""
    why: str = ""


class HookChange(msgspec.Struct, frozen=True):
    """A change of a file: its text before and after, `None` where there is no file."""

    path: str
    before: str | None
    after: str | None


Plan = Callable[[], HookChange]


def list_hook_files(
    adapters: Mapping[AgentName, LoadedAdapter], *, environ: Mapping[str, str], root: str
) -> list[HookFile]:
    """Return the files of all agents whose adapters have hooks, in the order of the adapters."""
    values = {"home": environ.get("HOME", ""), "cwd": root}
    found = []
    for name, loaded in adapters.items():
        hooks = loaded.adapter.hooks
        for place in hooks.files if hooks is not None else ():
            path = fill_text(place.path, values, environ)
            if hooks is not None and path is not None and os.path.isabs(path):
                found.append(HookFile(str(name), place.scope, os.path.normpath(path), hooks))
    return found


def read_status(file: HookFile, command: str) -> HookStatus:
    """Return what the file has of our hooks; `command` is the one that belongs there. Reads disk."""
    try:
        text = _read(file.path)
        found = [] if text is None else list(_iterate_ours(file.path, text))
    except RelayError as error:
        return HookStatus(file, "unreadable", why=error.sentence)
    commands = [hook for _, hook, _ in found]
    if not commands:
        return HookStatus(file, "absent")
    programs = [_find_program(one) for one in commands]
    for program, script in programs:
        if not (os.access(program, os.X_OK) and os.access(script, os.R_OK)):
            return HookStatus(file, "gone", script)
    is_whole = {event for event, _, _ in found} == set(file.hooks.events)
    if not is_whole or any(_strip_mark(one) != command for one in commands):
        return HookStatus(file, "other", programs[0][1])
    return HookStatus(file, "installed", programs[0][1])


def plan_install(file: HookFile, command: str) -> HookChange:
    """Return the change that gives the file relay's current hooks and no older ones.

    Raise ConfigurationError if the file is not one that can be edited.
    """
    text = _read(file.path)
    if text is None:
        made = _FILE if os.path.isdir(os.path.dirname(file.path)) else _FOLDER
        hooks = {event: [_build_item(file, command, made)] for event in file.hooks.events}
        return HookChange(file.path, None, json.dumps({_TABLE: hooks}, indent=2, ensure_ascii=False) + "\n")
    with _naming(file.path):
        after = text
        for event in _list_events(text):
            if event not in file.hooks.events:
                after = _take_out(after, event)
        for event in file.hooks.events:
            keys = (_TABLE, event)
            if any(_count_ours(item) for item in edits.find_list(after, keys)):
                after = edits.replace_items(after, keys, lambda item: _renew(file, item, command))
            else:
                after = edits.add_item(after, keys, lambda made: _build_item(file, command, made))
        edits.read_object(after)
    return HookChange(file.path, text, after)


def plan_removal(file: HookFile) -> HookChange:
    """Return the change that takes our hooks out of the file, and what was made for them if it is empty.

    Raise ConfigurationError if the file is not one that can be edited.
    """
    text = _read(file.path)
    if text is None:
        return HookChange(file.path, None, None)
    made = max((one for _, _, one in _iterate_ours(file.path, text)), default=0)
    with _naming(file.path):
        after = text
        for event in _list_events(text):
            after = _take_out(after, event)
        if made > 1:
            after = edits.remove_empty(after, (_TABLE,))
        edits.read_object(after)
    is_left = made < _FILE or os.path.islink(file.path) or after.strip() != "{}"
    return HookChange(file.path, text, after if is_left else None)


def change_file(path: str, plan: Plan, *, shown: HookChange | None = None) -> HookChange:
    """Make the change of the file at `path` that `plan` returns, and return it.

    Our other commands wait meanwhile. A link is followed, and the file's mode is kept. Raise
    ConfigurationError if the file cannot be edited, or the change is not the one that was `shown`, RelayError
    if it cannot be written; then the file is as it was.
    """
    folder = os.path.dirname(path)
    is_made = False
    try:
        if not os.path.isdir(folder):
            shown = shown or plan()
            if shown.after is None:
                return shown
            os.mkdir(folder, 0o700)
            is_made = True
        with lock_folder(os.path.realpath(folder), f"another command is changing {path}"):
            change = plan()
            if shown is not None and shown.before != change.before:
                raise ConfigurationError(
                    f"{path} was changed meanwhile", hint="Nothing was written. Try again."
                )
            _write(path, shown or change)
            is_made = False
            return shown or change
    except OSError as error:
        raise cannot_write(error.filename or path, error) from error
    finally:
        if is_made:
            os.rmdir(folder)


def _write(path: str, change: HookChange) -> None:
    if change.after is None and change.before is not None:
        made = max((one for _, _, one in _iterate_ours(path, change.before)), default=0)
        os.unlink(path)
        if made == _FOLDER:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(path))
    elif change.after is not None and change.after != change.before:
        write_config(path, change.after, before=change.before or "")


def _read(path: str) -> str | None:
    """Return the text of the file; `None` if there is none. Raise ConfigurationError."""
    try:
        return read_text(path)
    except FileNotFoundError:
        if os.path.islink(path):
            raise ConfigurationError(
                f"{path} is a link that leads nowhere", hint="Make the file it names, or remove the link."
            ) from None
        return None


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Raise ConfigurationError that names the file in the place of an error of its text."""
    try:
        yield
    except edits.JsonEditError as error:
        raise ConfigurationError(
            f"{path} was left alone: {error}", hint="Mend it, or move it away; then try again."
        ) from None


def _list_events(text: str) -> list[str]:
    found = edits.read_object(text).get(_TABLE, {})
    if not isinstance(found, dict):
        raise edits.JsonEditError(f"`{_TABLE}` in it is not an object")
    return [event for event, items in found.items() if isinstance(items, list)]


def _iterate_ours(path: str, text: str) -> Iterator[tuple[str, str, int]]:
    """Yield event, command and how much was made of each hook of ours. Raise ConfigurationError."""
    with _naming(path):
        for event in _list_events(text):
            for item in edits.find_list(text, (_TABLE, event)):
                for command in filter(None, map(_find_command, _list_hooks(item))):
                    yield event, command, _read_mark(command)


def _list_hooks(item: object) -> list[object]:
    hooks = item.get(_TABLE) if isinstance(item, dict) else None
    return hooks if isinstance(hooks, list) else []


def _find_command(hook: object) -> str:
    """Return the command of one of relay's hooks; empty for any other hook."""
    command = hook.get("command") if isinstance(hook, dict) else None
    return command if isinstance(command, str) and _MARKED.search(command) else ""


def _read_mark(command: str) -> int:
    found = _MARKED.search(command)
    return int(found[1]) if found is not None else 0


def _strip_mark(command: str) -> str:
    return _MARKED.sub("", command).rstrip(" ")


def _count_ours(item: object) -> int:
    return sum(bool(_find_command(hook)) for hook in _list_hooks(item))


def _build_hook(file: HookFile, command: str, made: int) -> dict[str, object]:
    return {"type": "command", "command": f"{command} {_MARK}{made}", **file.hooks.more}


def _build_item(file: HookFile, command: str, made: int) -> dict[str, object]:
    return {_TABLE: [_build_hook(file, command, made)]}


def _renew(file: HookFile, item: object, command: str) -> object:
    """Return the item with the command in our hooks, and with what else stands in it."""
    if not isinstance(item, dict) or not _count_ours(item):
        return item
    hooks = [
        _build_hook(file, command, _read_mark(found)) if (found := _find_command(hook)) else hook
        for hook in _list_hooks(item)
    ]
    return {**item, _TABLE: hooks}


def _take_out(text: str, event: str) -> str:
    """Return the text without our hooks at the event, and without its list if that was made for them."""
    keys = (_TABLE, event)
    items = edits.find_list(text, keys)
    made = max((_read_mark(_find_command(hook)) for item in items for hook in _list_hooks(item)), default=0)
    without = edits.remove_items(text, keys, lambda item: _count_ours(item) == len(_list_hooks(item)) > 0)
    without = edits.replace_items(without, keys, _drop_ours)
    return edits.remove_empty(without, keys) if made else without


def _drop_ours(item: object) -> object:
    if not isinstance(item, dict) or not _count_ours(item):
        return item
    return {**item, _TABLE: [hook for hook in _list_hooks(item) if not _find_command(hook)]}


def _find_program(command: str) -> tuple[str, str]:
    """Return the Python and the script that a command of ours runs; empty where it does not say."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return "", ""
    at = words.index("-c") + 2 if "-c" in words else len(words)
    return (words[at], words[at + 1]) if len(words) > at + 1 else ("", "")
