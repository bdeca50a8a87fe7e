"""The options of `agent-relay metrics`."""

import msgspec

from agent_relay.faces.cli.options import OptionParser, UsageError
from agent_relay.usage.groupings import GROUPINGS

HELP = f"""usage: agent-relay metrics [SESSION] [--chain|--all] [--by WHAT] [--since WHEN] [--agent A]
                           [--json|--csv]

What work has cost: tokens, money at list prices, turns, time, handoffs, limits, changed lines. Of this
repository's sessions, also those that agents keep themselves; read from the agents' own records and our
journals, without a daemon and without the network. A turn that ended at a limit counts as failed.

  SESSION       only this one: the beginning or end of its id
  --chain       also the sessions it goes back to, or went on in
  --all         all agents' sessions on this machine
  --by WHAT     rows: {", ".join(GROUPINGS[:-1])} or {GROUPINGS[-1]}
  --since WHEN  only what came later: 12h, 7d, 2w or a date
  --agent A     only this agent's work
  --json        as JSON: {{"rows": [...], "total": {{...}}, "prices": {{...}}}}
  --csv         as CSV, the fields of the JSON's rows
"""
_PARSER = OptionParser(
    "metrics",
    flags=("--chain", "--all", "--json", "--csv"),
    values=("--by", "--since", "--agent"),
    most=1,
)


class MetricsOptions(msgspec.Struct, frozen=True):
    """The options given."""

    session: str = ""
    chain: bool = False
    everything: bool = False
    by: str = "session"
    since: str = ""
    agent: str = ""
    as_json: bool = False
    as_csv: bool = False


def parse_options(words: list[str]) -> MetricsOptions | None:
    """Return the options, `None` if help is wanted; raise UsageError for wrong words."""
    found = _PARSER.parse(words)
    if found.wants_help:
        return None
    asked = MetricsOptions(
        session=found.arguments[0] if found.arguments else "",
        chain="--chain" in found.flags,
        everything="--all" in found.flags,
        by=found.values.get("--by", "session"),
        since=found.values.get("--since", ""),
        agent=found.values.get("--agent", ""),
        as_json="--json" in found.flags,
        as_csv="--csv" in found.flags,
    )
    for excluded, is_given in (
        ("SESSION and --all", asked.everything and bool(asked.session)),
        ("--chain and --all", asked.everything and asked.chain),
        ("--json and --csv", asked.as_json and asked.as_csv),
    ):
        if is_given:
            raise UsageError(f"{excluded} cannot be used together", command="metrics")
    return asked
