"""`agent-relay hooks`: report limits of agents started without relay, through the agents' own hooks."""

import difflib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from agent_relay.agents.adapters import LoadedAdapter, find_program
from agent_relay.agents.catalog import load_adapters
from agent_relay.agents.hook_files import (
    HookChange,
    HookFile,
    HookState,
    change_file,
    list_hook_files,
    plan_install,
    plan_removal,
    read_status,
)
from agent_relay.agents.launch import build_unmanaged_command
from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import HOME_VARIABLE
from agent_relay.domain.values import AgentName
from agent_relay.faces.cli.typer_runner import AsJson, Functions
from agent_relay.faces.render.output import ask, plain, print_either, print_json, print_lines, warn
from agent_relay.store.session_index import find_near_root
from agent_relay.system.disk.folders import Folders, ensure_private, get_cwd, get_folders

Agents = Annotated[
    list[str] | None,
    typer.Argument(metavar="[AGENT…]", help="The agents to change; default: every installed agent."),
]
Project = Annotated[
    bool,
    typer.Option(
        "--project", help="Change this repository's settings, not your own; not every agent has these."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

_STATES: Mapping[HookState, str] = {
    "absent": "not installed",
    "installed": "installed",
    "other": "installed by another agent-relay, or for other folders",
    "gone": "hooks point to an installation that is gone",
    "unreadable": "cannot be read",
}


@dataclass(frozen=True, slots=True)
class _Place:
    """The files that may have hooks, and the command for them."""

    folders: Folders
    adapters: Mapping[AgentName, LoadedAdapter]
    files: tuple[HookFile, ...]

    def build_command(self, agent: str) -> str:
        """Return the command of the agent's hooks."""
        reports = os.path.join(self.folders.hooks, agent)
        home = os.environ.get(HOME_VARIABLE, "")
        return build_unmanaged_command(reports, self.folders.runtime, home)


def install(
    agents: Agents = None,
    *,
    project: Project = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Install hooks that report limits of agents started without relay; other settings stay as they are."""
    place = _open_place()
    files = _choose(place, agents or [], project=project, only_installed=True)
    plans = [(file, partial(plan_install, file, place.build_command(file.agent))) for file in files]
    if not dry_run:
        for file in files:
            for folder in (place.folders.state, place.folders.hooks, f"{place.folders.hooks}/{file.agent}"):
                ensure_private(folder)
    changed = _change(plans, dry_run=dry_run, yes=yes, as_json=as_json)
    if not dry_run:
        _tell_daemon(place.folders)
    if as_json or dry_run:
        return
    for agent in dict.fromkeys(file.agent for file in changed):
        notice = next(file.hooks.notice for file in changed if file.agent == agent)
        print_lines(*([f"{notice}."] if notice else []))


def uninstall(
    agents: Agents = None,
    *,
    project: Project = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove relay's hooks; a file that nothing else has changed is restored byte for byte."""
    place = _open_place()
    files = _choose(place, agents or [], project=project, only_installed=False)
    _change(
        [(file, partial(plan_removal, file)) for file in files], dry_run=dry_run, yes=yes, as_json=as_json
    )


def status(*, as_json: AsJson = False) -> None:
    """Show which files have relay's hooks, and whether they work."""
    place = _open_place()
    rows: list[dict[str, object]] = []
    lines: list[str] = []
    for file in place.files:
        found = read_status(file, place.build_command(file.agent))
        rows.append(
            {
                "agent": file.agent,
                "scope": file.scope,
                "path": plain(file.path),
                "state": found.state,
                "program": plain(found.program),
                "why": plain(found.why),
            }
        )
        said = _STATES[found.state]
        more = (
            found.why
            if found.state == "unreadable"
            else found.program
            if found.state in {"other", "gone"}
            else ""
        )
        lines.append(f"{file.agent:10}{file.scope:9}{said}{f' ({more})' if more else ''}: {file.path}")
    none = {
        name: loaded.adapter.hooks.unsupported
        for name, loaded in place.adapters.items()
        if loaded.adapter.hooks
    }
    rows += [
        {"agent": name, "scope": "", "path": "", "state": "unsupported", "program": "", "why": why}
        for name, why in none.items()
        if why
    ]
    lines += [f"{name:10}{'':9}none: {why}" for name, why in none.items() if why]
    print_either({"hooks": rows}, *(plain(line) for line in lines), as_json=as_json)


HOOKS: Functions = {"install": install, "uninstall": uninstall, "status": status}
"""The functions by sub-command."""


def _open_place() -> _Place:
    root = find_near_root(get_cwd())
    folders = get_folders()
    adapters = load_adapters(folders, root=root)
    return _Place(folders, adapters, tuple(list_hook_files(adapters, environ=os.environ, root=root)))


def _choose(place: _Place, agents: Sequence[str], *, project: bool, only_installed: bool) -> list[HookFile]:
    """Return the files to change. Raise WrongUseError for an agent that is unknown or has none."""
    scope = "project" if project else "user"
    known = [file for file in place.files if file.scope == scope]
    for agent in agents:
        loaded = place.adapters.get(AgentName(agent))
        if loaded is None:
            raise WrongUseError(f"there is no agent {agent[:40]!r}", hint="See: agent-relay agents")
        if all(file.agent != agent for file in known):
            raise WrongUseError(*_explain(loaded, agent, is_project=project))
    if agents:
        return [file for file in known if file.agent in agents]
    if not only_installed:
        return known
    found = [
        file for file in known if find_program(place.adapters[AgentName(file.agent)], os.environ) is not None
    ]
    if not found:
        raise RelayError("no installed agent supports hooks", hint="See: agent-relay doctor")
    return found


def _explain(loaded: LoadedAdapter, agent: str, *, is_project: bool) -> tuple[str]:
    hooks = loaded.adapter.hooks
    if hooks is not None and hooks.files and is_project:
        return (f"{agent} has no private settings for a single repository",)
    why = hooks.unsupported if hooks is not None else ""
    return (f"{agent} does not support relay's hooks{f': {why}' if why else ''}",)


def _change(
    plans: Sequence[tuple[HookFile, Callable[[], HookChange]]], *, dry_run: bool, yes: bool, as_json: bool
) -> list[HookFile]:
    """Make the changes, after asking if there is a terminal; return the files that were changed."""
    due: list[tuple[HookFile, Callable[[], HookChange], HookChange]] = []
    refused: list[tuple[HookFile, RelayError]] = []
    for file, plan in plans:
        try:
            change = plan()
        except RelayError as error:
            refused.append((file, error))
            continue
        if change.before != change.after:
            due.append((file, plan, change))
    if dry_run:
        _show(due, refused, as_json=as_json)
        return []
    is_asked = due and not yes and not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if is_asked and not _ask([change for _, _, change in due]):
        print_lines("Nothing was changed.")
        return []
    changed: list[HookFile] = []
    for file, plan, shown in due:
        try:
            change_file(file.path, plan, shown=shown if is_asked else None)
            changed.append(file)
        except RelayError as error:
            refused.append((file, error))
    _report(plans, changed, refused, as_json=as_json)
    return changed


def _ask(changes: Sequence[HookChange]) -> bool:
    names = "\n".join(f"  {plain(change.path)}" for change in changes)
    return ask(f"These files will be changed:\n{names}\nContinue? [y/N] ") in {"y", "yes"}


def _show(
    due: Sequence[tuple[HookFile, object, HookChange]],
    refused: Sequence[tuple[HookFile, RelayError]],
    *,
    as_json: bool,
) -> None:
    if as_json:
        changes = [
            {"agent": file.agent, "path": plain(file.path), "diff": _render(change)}
            for file, _, change in due
        ]
        print_json({"changes": changes, "refused": _list_refused(refused)})
    for _, _, change in due if not as_json else ():
        print_lines(*_render(change))
    if not due and not as_json:
        print_lines("Nothing would be changed.")
    _raise_first(refused, as_json=as_json)


def _render(change: HookChange) -> list[str]:
    """Return the lines of the difference that the change makes."""
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    old, new = (os.devnull if text is None else change.path for text in (change.before, change.after))
    return [plain(line) for line in difflib.unified_diff(before, after, old, new, lineterm="")]


def _report(
    plans: Sequence[tuple[HookFile, object]],
    changed: Sequence[HookFile],
    refused: Sequence[tuple[HookFile, RelayError]],
    *,
    as_json: bool,
) -> None:
    failed = [file for file, _ in refused]
    same = [file for file, _ in plans if file not in changed and file not in failed]
    if as_json:
        view: dict[str, object] = {
            "changed": [plain(file.path) for file in changed],
            "unchanged": [plain(file.path) for file in same],
        }
        print_json({**view, "refused": _list_refused(refused)})
    else:
        print_lines(
            *(f"{file.agent}: {plain(file.path)} was changed." for file in changed),
            *(f"{file.agent}: {plain(file.path)} is already up to date." for file in same),
        )
    _raise_first(refused, as_json=as_json)


def _list_refused(refused: Sequence[tuple[HookFile, RelayError]]) -> list[dict[str, str]]:
    return [
        {"agent": file.agent, "path": plain(file.path), "why": plain(error.sentence)}
        for file, error in refused
    ]


def _raise_first(refused: Sequence[tuple[HookFile, RelayError]], *, as_json: bool) -> None:
    """Raise the first error, after printing the others."""
    for _, error in refused[1:] if not as_json else ():
        warn(error.sentence)
    if refused:
        raise refused[0][1]


def _tell_daemon(folders: Folders) -> None:
    """Have a running daemon follow the reports; one that is started later does so by itself."""
    try:
        with Connection.open(folders) as connection:
            connection.request("hooks.follow")
    except NobodyListensError:
        return
    except RelayError as error:
        warn(f"the daemon will follow these hooks after a restart: {error.sentence}")
