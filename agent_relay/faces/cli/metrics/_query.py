"""Gather the figures for `agent-relay metrics` and print the report."""

import os
import re
from datetime import UTC, datetime, timedelta

from agent_relay.faces.cli.metrics._options import MetricsOptions
from agent_relay.faces.cli.options import UsageError
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.usage.gather import Gathered, Wanted, check_agent, gather_metrics
from agent_relay.usage.groupings import GROUPINGS, Grouping

_SINCE = re.compile(r"([0-9]{1,5})([hdw])")
_answered: list[Gathered] = []
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def answer_query(asked: MetricsOptions) -> None:
    """Print the report.

    Raises UsageError for values that are not known.
    """
    now = datetime.now(UTC)
    by, since_ms = _parse_by(asked.by), _parse_since(asked.since, now)
    gathered = gather_metrics(
        get_folders(), Wanted(asked.session, is_chain=asked.chain, is_all=asked.everything),
        cwd=get_cwd(), environ=os.environ, now=now,
    )  # fmt: skip
    if asked.agent:
        check_agent(gathered, asked.agent, get_folders(), cwd=get_cwd())
    # It goes with the process, at once: taking hundreds of thousands of marks apart takes a while.
    _answered.append(gathered)
    from agent_relay.faces.cli.metrics._report import print_answer

    print_answer(asked, gathered, by, since_ms, now)


def _parse_by(text: str) -> Grouping:
    for known in GROUPINGS:
        if text == known:
            return known
    raise UsageError(f"invalid --by {text[:20]!r}", hint=f"Known: {', '.join(GROUPINGS)}", command="metrics")


def _parse_since(text: str, now: datetime) -> int:
    """Return the moment in epoch ms, 0 for an empty text; raise UsageError if it is none.

    The text is an age (12h, 7d, 2w) or an ISO date or moment, in the user's zone unless it names one.
    """
    if not text:
        return 0
    from agent_relay.usage.session_work import to_ms

    match = _SINCE.fullmatch(text)
    try:
        at = now - int(match[1]) * _UNITS[match[2]] if match else datetime.fromisoformat(text)
        # One without a zone is local: unlike `astimezone`, its timestamp is right where midnight is skipped.
        return to_ms(at)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"invalid --since {text[:30]!r}",
            hint="Write 12h, 7d, 2w or a date such as 2026-11-20",
            command="metrics",
        ) from None
