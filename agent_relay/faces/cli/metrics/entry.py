"""Print a cached report that is still valid; otherwise load what makes a new one."""

import sys

from agent_relay.domain.errors import ExitCode
from agent_relay.faces.cli.metrics._cache_key import build_cache_key
from agent_relay.system.disk.folders import get_folders
from agent_relay.usage.report_cache import find_report


def run_metrics(words: list[str]) -> int:
    """Run `agent-relay metrics`; return its exit status.

    If nothing changed since the same was asked, the cached report is printed and nothing is read again.
    """
    report = find_report(get_folders().reports, build_cache_key(words))
    if report:
        sys.stdout.write(report)
        return ExitCode.DONE
    return _answer_anew(words)


def _answer_anew(words: list[str]) -> int:
    """Make and print a new report; return the exit status."""
    from agent_relay.faces.cli.metrics._options import HELP, parse_options
    from agent_relay.faces.cli.metrics._query import answer_query

    asked = parse_options(words)
    if asked is None:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    answer_query(asked, words)
    return ExitCode.DONE
