"""`agent-relay limits`: show which agents rest and until when; declare that one works again."""

from typing import Annotated

import typer

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.text.names import name_rest
from agent_relay.domain.text.plain import quote_reason
from agent_relay.faces.cli.typer_runner import Functions
from agent_relay.faces.render.output import print_either, print_json, print_table, render_moment
from agent_relay.session.rests import drop_rests
from agent_relay.store.ledger import update_ledger
from agent_relay.store.session_index import check_ledger, find_near_root, read_resting
from agent_relay.system.disk.folders import get_cwd, get_folders

AsJson = Annotated[bool, typer.Option("--json", help="As JSON: {limits: [...]}.")]


def limits(*, as_json: AsJson = False) -> None:
    """Which agents rest, why, and until when. `agent-relay limits clear AGENT` forgets what is known."""
    ledger = get_folders().ledger
    check_ledger(ledger)
    found = read_resting(ledger)
    if as_json:
        print_json({"limits": found})
        return
    rows = [
        [
            str(rest["agent"]),
            name_rest(str(rest["scope"]), str(rest["model"])),
            render_moment(rest["until"]) or "you clear it",
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
