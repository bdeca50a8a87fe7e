"""`agent-relay agents`: who is known, installed, signed in, and resting."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from agent_relay.agents.adapters import (
    SCRIPTED,
    LoadedAdapter,
    find_program,
    is_signed_in,
    list_default_roster,
)
from agent_relay.agents.catalog import read_catalog
from agent_relay.domain.documents.config import build_roster
from agent_relay.domain.values.ids import AgentName
from agent_relay.faces.render.output import print_json, print_table, render_moment
from agent_relay.store.session_summaries import (
    check_ledger,
    find_ledger_trouble,
    find_near_root,
    read_resting,
)
from agent_relay.system.config.config_file import read_project_config, read_user_config
from agent_relay.system.disk.folders import get_cwd, get_folders

_RESTS = {"True": "yes", "False": "-", "None": "unknown"}


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


def _print(rows: Sequence[Mapping[str, object]]) -> None:
    cells = [
        [
            str(row["place"] or "-"),
            str(row["name"]),
            str(row["program"] or "not installed"),
            "yes" if row["signed_in"] else "no",
            render_moment(row["rests_until"]) or _RESTS[str(row["resting"])],
            str(row["origin"]),
        ]
        for row in rows
    ]
    headers = ("place", "agent", "program", "signed in", "rests until", "adapter")
    print_table(headers, cells, empty="There are no adapters.")


def build_view(cwd: str, environ: Mapping[str, str]) -> list[dict[str, object]]:
    """Return one row per agent; `place` is its place in the roster here, from 1, `None` if it has none.

    `resting` is `None` if the ledger cannot be read.
    """
    folders = get_folders(environ)
    root = find_near_root(cwd)
    adapters = read_catalog(folders, root=root).adapters
    known = list_default_roster(adapters)
    roster = build_roster(known, read_user_config(folders.config), read_project_config(root))
    is_known = not find_ledger_trouble(folders.ledger)
    resting = {str(rest["agent"]): rest for rest in read_resting(folders.ledger)} if is_known else None
    names = [
        *[name for name in roster if name in adapters],
        *[name for name in adapters if name not in roster],
    ]
    return [_row(name, adapters, roster, resting, environ) for name in names]


def _row(
    name: str,
    adapters: Mapping[AgentName, LoadedAdapter],
    roster: tuple[str, ...],
    resting: Mapping[str, Mapping[str, object]] | None,
    environ: Mapping[str, str],
) -> dict[str, object]:
    loaded = adapters[AgentName(name)]
    rest = resting.get(name) if resting is not None else None
    return {
        "name": name,
        "title": loaded.adapter.title,
        "place": roster.index(name) + 1 if name in roster else None,
        "program": find_program(loaded, environ),
        "signed_in": is_signed_in(loaded.adapter, environ, environ.get("HOME", "")),
        "sign_in": loaded.adapter.sign_in,
        "resting": rest is not None if resting is not None else None,
        "rests_until": rest["until"] if rest else "",
        "scope": rest["scope"] if rest else "",
        "origin": loaded.origin,
        "tested_version": loaded.adapter.newest_tested,
        "tested_versions": list(loaded.adapter.tested_versions),
        "scripted": SCRIPTED in loaded.adapter.capabilities,
    }
