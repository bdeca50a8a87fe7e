"""`agent-relay agents`, `adapters`, `model`, `order`: show who is known and trusted; set order and models."""

import contextlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
import typer

from agent_relay.agents.adapter_folders import project_adapters
from agent_relay.agents.adapters import (
    SCRIPTED,
    LoadedAdapter,
    find_program,
    is_signed_in,
    list_default_roster,
)
from agent_relay.agents.catalog import (
    find_trusted,
    fingerprint_folder,
    load_adapters,
    read_catalog,
    trust_folder,
)
from agent_relay.agents.hook_files import list_hook_files, read_status
from agent_relay.agents.tool_extension import list_extensions, read_extension
from agent_relay.domain.documents.config import UserConfig, build_roster
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.text.names import name_rest
from agent_relay.domain.values import AgentName
from agent_relay.faces.cli.dispatch import render_extra_install
from agent_relay.faces.cli.options import UsageError
from agent_relay.faces.cli.typer_runner import Functions
from agent_relay.faces.render.output import (
    ask,
    get_rows,
    print_either,
    print_json,
    print_lines,
    print_table,
    render_rest_end,
    warn,
)
from agent_relay.session.views.summary import list_budgets
from agent_relay.store.session_index import (
    check_ledger,
    find_last_rest,
    find_ledger_trouble,
    find_near_root,
    read_resting,
    read_sessions_at,
)
from agent_relay.store.usage_windows import read_windows, render_known
from agent_relay.system.config_file import (
    FILE_NAME,
    read_project_config,
    read_toml,
    read_user_config,
    write_model,
    write_order,
)
from agent_relay.system.disk.folders import get_cwd, get_folders


def agents(
    *,
    everybody: Annotated[bool, typer.Option("--all", help="The scripted agents too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {agents: [...]}.")] = False,
) -> None:
    """List the agents in their order, with what keeps each from taking over."""
    view = build_view(get_cwd(), os.environ)
    rows = [row for row in view if everybody or as_json or not row["scripted"]]
    if as_json:
        print_json({"agents": rows})
    else:
        _print(rows)
    # The rest of it is true; who rests, nobody knows.
    check_ledger(get_folders().ledger)


def list_tools_findings(config: UserConfig) -> list[tuple[Literal["ok", "note"], str, str]]:
    """Return whether agents get relay's tools: level, finding and remedy; nothing if they are turned off.

    They are optional: only a user who asked for them is told of their lack as of a fault.
    """
    if not config.agent_tools:
        return []
    if importlib.util.find_spec("mcp") is not None:
        return [("ok", "agents are given relay's tools (docs/mcp.md)", "")]
    install, is_asked = render_extra_install("mcp"), False
    with contextlib.suppress(FileNotFoundError):
        is_asked = "agent_tools" in read_toml(os.path.join(get_folders().config, FILE_NAME))
    if is_asked:
        what = "config.toml has agent_tools = true, but their library is not installed, so agents get none"
        return [("note", what, f"Install it: {install}")]
    return [("ok", "relay's optional tools for agents are not installed", f"To give agents tools: {install}")]


def list_lost_hooks(cwd: str, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what is wrong with hooks and extensions of ours in agents' folders, and the remedy."""
    root, folders = find_near_root(cwd), get_folders()
    adapters = load_adapters(folders, root=root)
    found = []
    for file in list_hook_files(adapters, environ=environ, root=root):
        status = read_status(file, "")
        if status.state == "gone":
            scope = " --project" if file.scope == "project" else ""
            what = f"the hooks in {file.path} point to an installation that is gone ({status.program})"
            remedy = (
                f"Run: agent-relay hooks install{scope} {file.agent}"
                f", or take them out: agent-relay hooks uninstall{scope} {file.agent}"
            )
            found.append((what, remedy))
    for one in list_extensions(adapters, environ):
        if read_extension(one, folders.runtime).state == "gone":
            what = f"the extension {one.path} points to an installation that is gone"
            remedy = f"Run: agent-relay mcp install {one.agent}, or: agent-relay mcp uninstall {one.agent}"
            found.append((what, remedy))
    return found


def _print(rows: Sequence[Mapping[str, object]]) -> None:
    now = datetime.now(UTC)
    cells = [
        [
            str(row["place"] or "-"),
            str(row["name"]),
            str(row["program"] or "not installed"),
            "yes" if row["signed_in"] else "no",
            _render_rest(row),
            render_known(get_rows(row, "windows"), now),
            str(row["origin"]),
        ]
        for row in rows
    ]
    headers = ("place", "agent", "program", "signed in", "rests until", "used", "adapter")
    print_table(headers, cells, empty="There are no adapters.")
    for row in rows:
        print_lines(*(f"{row['name']}: {spent['text']}" for spent in get_rows(row, "budgets")))


def _render_rest(row: Mapping[str, object]) -> str:
    if row["resting"]:
        limits = dict.fromkeys(
            name_rest(str(rest["scope"]), str(rest["model"])) for rest in (row, *get_rows(row, "rests"))
        )
        end = render_rest_end({"until": row["rests_until"], "assumed": row["assumed"]})
        return f"{end} ({', '.join(limits)})"
    return "unknown" if row["resting"] is None else "-"


def build_view(cwd: str, environ: Mapping[str, str]) -> list[dict[str, object]]:
    """Return one row per agent; `place` is its place in the roster here, from 1, `None` if it has none.

    `resting` is `None` if the ledger cannot be read; the other fields of a rest are those of the one that
    ends last, and `rests` are all of them. `windows` are its usage windows as last read; none means that
    nobody knows how much is used. `budgets` are those that sessions here noted as used up.
    """
    folders = get_folders(environ)
    root = find_near_root(cwd)
    adapters = read_catalog(folders, root=root).adapters
    known = list_default_roster(adapters)
    roster = build_roster(known, read_user_config(folders.config), read_project_config(root))
    is_known = not find_ledger_trouble(folders.ledger)
    resting = read_resting(folders.ledger) if is_known else None
    names = [
        *[name for name in roster if name in adapters],
        *[name for name in adapters if name not in roster],
    ]
    now = datetime.now(UTC)
    windows = read_windows(folders.usage_windows, now)
    sessions = read_sessions_at(root, folders.sessions)
    return [
        {
            **_row(name, adapters, roster, resting, environ),
            "windows": [row for row in windows if row["agent"] == name],
            "budgets": _list_spent(sessions, name, now),
        }
        for name in names
    ]


def _list_spent(
    sessions: Sequence[Mapping[str, object]], agent: str, now: datetime
) -> list[dict[str, object]]:
    """Return the used-up budgets of `agent`: a day's once, a session's with each session that goes on."""
    found: dict[tuple[object, object], dict[str, object]] = {}
    for view in sessions:
        for known in list_budgets(view, agent, now):
            session = "" if known["until"] else view["session"]
            if known["mark"] == "spent" and (known["until"] or view["state"] != "ended"):
                spent = {key: known[key] for key in ("budget", "text", "until")}
                found.setdefault((known["budget"], session), {**spent, "session": session})
    return list(found.values())


def _row(
    name: str,
    adapters: Mapping[AgentName, LoadedAdapter],
    roster: tuple[str, ...],
    resting: list[dict[str, object]] | None,
    environ: Mapping[str, str],
) -> dict[str, object]:
    loaded = adapters[AgentName(name)]
    rest = find_last_rest(resting, name) if resting is not None else None
    return {
        "name": name,
        "title": loaded.adapter.title,
        "place": roster.index(name) + 1 if name in roster else None,
        "program": find_program(loaded, environ),
        "signed_in": is_signed_in(loaded.adapter, environ, environ.get("HOME", "")),
        "sign_in": loaded.adapter.sign_in,
        "resting": rest is not None if resting is not None else None,
        "rests_until": rest["until"] if rest else "",
        "assumed": rest["assumed"] if rest else False,
        "scope": rest["scope"] if rest else "",
        "model": rest["model"] if rest else "",
        "rests": [one for one in resting or () if one["agent"] == name],
        "origin": loaded.origin,
        "tested_version": loaded.adapter.newest_tested,
        "tested_versions": list(loaded.adapter.tested_versions),
        "scripted": SCRIPTED in loaded.adapter.capabilities,
        "capabilities": list(loaded.adapter.capabilities),
        "accepts": list(loaded.adapter.accepts),
        "produces": list(loaded.adapter.produces),
    }


def list_adapters(
    *, as_json: Annotated[bool, typer.Option("--json", help="As JSON: {adapters, broken, project}.")] = False
) -> None:
    """Every adapter in use, and whether this project's own are trusted."""
    folders = get_folders()
    root = find_near_root(get_cwd())
    catalog = read_catalog(folders, root=root)
    place = project_adapters(root)
    project = {
        "folder": place,
        "exists": os.path.isdir(place),
        "trusted": bool(find_trusted(place, state=folders.state)),
    }
    if as_json:
        rows = [
            {"name": name, "origin": one.origin, "folder": one.folder}
            for name, one in catalog.adapters.items()
        ]
        broken = [msgspec.structs.asdict(one) for one in catalog.broken]
        print_json({"adapters": rows, "broken": broken, "project": project})
        return
    cells = [[name, one.origin, one.folder] for name, one in catalog.adapters.items()]
    print_table(("agent", "from", "folder"), cells, empty="There are no adapters.")
    for one in catalog.broken:
        warn(f"left out: {one.sentence}")
    if project["exists"] and not project["trusted"]:
        print_lines(f"{place} is not trusted, so it is ignored. Read it, then: agent-relay adapters trust")


def trust(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: {folder, fingerprint, files}; with --yes.")
    ] = False,
) -> None:
    """Trust this project's `.agent-relay/adapters/`, exactly as it is now."""
    folders = get_folders()
    place = project_adapters(find_near_root(get_cwd()))
    if not os.path.isdir(place):
        raise WrongUseError(f"this project has no adapters of its own: there is no {place}")
    fingerprint, files = fingerprint_folder(place)
    if as_json:
        if not yes:
            raise UsageError(
                "--json cannot ask for confirmation; add --yes",
                hint="Read the files in .agent-relay/adapters first",
                command="adapters trust",
            )
        trust_folder(place, state=folders.state, shown=fingerprint)
        print_json({"folder": place, "fingerprint": fingerprint, "files": sorted(files)})
        return
    print_lines(f"{place} (SHA-256 {fingerprint}):", *(f"  {name}" for name in sorted(files)))
    question = "These files decide which programs are started. Trust them? [y/N] "
    if not yes and ask(question) not in {"y", "yes"}:
        raise RelayError("the project's adapters are not trusted", hint="Without a question: --yes")
    trust_folder(place, state=folders.state, shown=fingerprint)
    print_lines("Trusted, until any of these files changes.")


ADAPTERS: Functions = {"list": list_adapters, "trust": trust}
"""The functions by sub-command."""


def model(
    agent: Annotated[str, typer.Argument(help="The agent; by default all that have a model set.")] = "",
    name: Annotated[str, typer.Argument(metavar="MODEL", help="The model; - is the agent's own.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {models: {agent: model}}.")] = False,
) -> None:
    """Show, or set, the model an agent is started with from now on."""
    folders = get_folders()
    catalog = read_catalog(folders, root=find_near_root(get_cwd()))
    if agent:
        catalog.get(agent)
    if name:
        write_model(folders.config, agent, "" if name == "-" else name)
    config = read_user_config(folders.config)
    found = {one: config.get_agent(one).model for one in ([agent] if agent else catalog.adapters)}
    if as_json:
        print_json({"models": found})
        return
    rows = [[one, chosen or "its own"] for one, chosen in found.items() if chosen or agent]
    print_table(("agent", "model"), rows, empty="Every agent has its own model.")


def order(
    agents: Annotated[
        list[str] | None, typer.Argument(help="Preferred first; others never take over.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {order: [...]}.")] = False,
) -> None:
    """Show, or set, the agents that may take over, preferred first."""
    folders = get_folders()
    root = find_near_root(get_cwd())
    catalog = read_catalog(folders, root=root)
    if agents:
        for name in agents:
            catalog.get(name)
            if agents.count(name) > 1:
                raise WrongUseError(
                    f"the order cannot be set: {name} is named twice", hint="Name each agent once"
                )
        write_order(folders.config, tuple(agents))
    known = list_default_roster(catalog.adapters)
    roster = build_roster(known, read_user_config(folders.config), read_project_config(root))
    print_either({"order": list(roster)}, " ".join(roster), as_json=as_json)
