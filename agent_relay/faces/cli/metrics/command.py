"""The options of `agent-relay metrics` for typer: help, mistakes and every spelling."""

from contextvars import ContextVar
from typing import Annotated

import typer

from agent_relay.faces.cli.metrics._options import MetricsOptions
from agent_relay.faces.cli.metrics._query import answer_query
from agent_relay.faces.cli.typer_runner import Function, run_one

_words: ContextVar[list[str]] = ContextVar("words")


def run(words: list[str]) -> int:
    """Run `agent-relay metrics` with its words parsed by typer; return its exit status."""
    _words.set(words)
    return run_one(metrics, words, name="metrics")


def metrics(
    session: Annotated[str, typer.Argument(help="Only this one: the beginning or end of its id.")] = "",
    *,
    chain: Annotated[
        bool, typer.Option("--chain", help="Also the sessions it goes back to, or went on in.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All agents' sessions on this machine.")] = False,
    by: Annotated[str, typer.Option("--by", help="Rows: session, leg, agent, model or day.")] = "session",
    since: Annotated[str, typer.Option("--since", help="Only what came later: 12h, 7d, 2w or a date.")] = "",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent's work.")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: {rows: [...], total: {...}, prices: {...}}.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV, the fields of the JSON's rows.")] = False,
) -> None:
    """Show what work has cost: tokens, money at list prices, turns, time, handoffs, limits, changed lines.

    Of this repository's sessions, those agents keep themselves included; read from the agents' own records
    and our journals, without a daemon and without the network. A turn that ended at a limit has failed.
    """
    asked = MetricsOptions(session, chain, everything, by, since, agent, as_json, as_csv)
    answer_query(asked, _words.get([]))


FUNCTIONS: dict[str, Function] = {"": metrics}
"""For the generated page of commands."""
