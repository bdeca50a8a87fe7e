"""`agent-relay adapters`: list where adapters come from, and trust those a project brings."""

import os
from dataclasses import asdict
from typing import Annotated

import typer

from agent_relay.agents.adapter_folders import project_adapters
from agent_relay.agents.catalog import read_catalog
from agent_relay.agents.trust import find_trusted, fingerprint_folder, trust_folder
from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.options import UsageError
from agent_relay.faces.cli.typer_runner import Functions
from agent_relay.faces.render.output import print_json, print_lines, print_table, warn
from agent_relay.store.session_summaries import find_near_root
from agent_relay.system.disk.folders import get_cwd, get_folders


def list_adapters(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {adapters, broken, project}.")] = False,
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
        print_json({"adapters": rows, "broken": [asdict(one) for one in catalog.broken], "project": project})
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
                "--json needs --yes, as it asks nothing",
                hint="Read the files first",
                command="adapters trust",
            )
        trust_folder(place, state=folders.state, shown=fingerprint)
        print_json({"folder": place, "fingerprint": fingerprint, "files": sorted(files)})
        return
    print_lines(f"{place} (SHA-256 {fingerprint}):", *(f"  {name}" for name in sorted(files)))
    if not yes:
        typer.confirm("These files decide which programs are started. Trust them?", abort=True)
    trust_folder(place, state=folders.state, shown=fingerprint)
    print_lines("Trusted, until any of these files changes.")


ADAPTERS: Functions = {"list": list_adapters, "trust": trust}
"""By sub-command."""
