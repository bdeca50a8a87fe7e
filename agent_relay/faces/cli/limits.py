"""`agent-relay limits`: show resting agents and used usage windows; clear an agent's limits."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.moments import parse_moment, render_age
from agent_relay.domain.text.names import name_rest, name_source
from agent_relay.domain.text.plain import quote_reason
from agent_relay.faces.cli.typer_runner import Functions
from agent_relay.faces.render.output import (
    print_either,
    print_json,
    print_lines,
    print_table,
    render_moment,
    render_rest_end,
)
from agent_relay.session.rests import drop_rests
from agent_relay.store.ledger import update_ledger
from agent_relay.store.session_index import check_ledger, find_near_root, read_live_at, read_resting
from agent_relay.store.usage_windows import get_window_name, read_windows, round_percent
from agent_relay.system.disk.folders import get_cwd, get_folders

AsJson = Annotated[bool, typer.Option("--json", help="As JSON: {limits, windows, unseen}.")]


def limits(*, as_json: AsJson = False) -> None:
    """Show which agents are resting, and the usage of their limits that they last reported.

    `agent-relay limits clear AGENT` makes a resting agent available again.
    """
    folders, now = get_folders(), datetime.now(UTC)
    check_ledger(folders.ledger)
    found, windows = read_resting(folders.ledger), read_windows(folders.usage_windows, now)
    unseen = _list_unseen(windows)
    if as_json:
        print_json({"limits": found, "windows": windows, "unseen": unseen})
        return
    _print_rests(found)
    if windows or unseen:
        print_lines("")
        _print_windows(windows, unseen, now)


def _list_unseen(windows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the agents in this repository's sessions that have reported no window.

    `agents` names all there are; to know them, adapters have to be read, which takes longer.
    """
    seen = {row["agent"] for row in windows}
    sessions = read_live_at(find_near_root(get_cwd()), get_folders().sessions)
    return sorted({str(row["agent"]) for row in sessions if row["agent"] and row["agent"] not in seen})


def _print_windows(windows: Sequence[Mapping[str, object]], unseen: Sequence[str], now: datetime) -> None:
    rows = [
        [
            str(row["agent"]),
            get_window_name(row),
            f"{round_percent(row)} %",
            render_moment(row["resets_at"]),
            f"{render_age(read_at, now)} ago" if (read_at := parse_moment(row["read_at"])) else "-",
            name_source(str(row["source"])),
        ]
        for row in windows
    ]
    rows += [[agent, "unknown", "cannot be seen", "-", "-", "-"] for agent in unseen]
    headers = ("agent", "usage window", "used", "resets", "read", "from")
    print_table(headers, rows, empty="")


def _print_rests(found: Sequence[Mapping[str, object]]) -> None:
    rows = [
        [
            str(rest["agent"]),
            name_rest(str(rest["scope"]), str(rest["model"])),
            render_rest_end(rest),
            quote_reason(str(rest["evidence"])),
        ]
        for rest in found
    ]
    print_table(("agent", "limit", "rests until", "because"), rows, empty="No agent is resting.")


def clear(
    agent: Annotated[str, typer.Argument(help="The agent that may work again.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {cleared: AGENT}.")] = False,
) -> None:
    """Forget an agent's limits: it may be chosen again."""
    folders = get_folders()
    check_ledger(folders.ledger)
    if not any(rest["agent"] == agent for rest in read_resting(folders.ledger)):
        from agent_relay.agents.catalog import read_catalog

        read_catalog(folders, root=find_near_root(get_cwd())).get(agent)
        raise WrongUseError(f"{agent} does not rest", hint="See: agent-relay limits")
    update_ledger(folders.ledger, lambda rests: drop_rests(rests, agent))
    print_either({"cleared": agent}, f"{agent} may be chosen again.", as_json=as_json)


LIMITS: Functions = {"": limits, "clear": clear}
