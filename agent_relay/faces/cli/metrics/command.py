"""`agent-relay metrics`: load what makes the report, and make it."""

import sys

from agent_relay.domain.errors import ExitCode


def run_metrics(words: list[str]) -> int:
    """Run `agent-relay metrics`; return its exit status."""
    from agent_relay.faces.cli.metrics._options import HELP, parse_options
    from agent_relay.faces.cli.metrics._report import answer_query

    asked = parse_options(words)
    if asked is None:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    answer_query(asked)
    return ExitCode.DONE
