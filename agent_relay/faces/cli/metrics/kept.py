"""The door of `agent-relay metrics`: a report that still holds is shown again, and nothing else is loaded."""

import sys
from collections.abc import Callable

from agent_relay.domain.errors import ExitCode
from agent_relay.domain.loading import Absent, Calmly
from agent_relay.faces.cli.metrics.question import build_question
from agent_relay.system.folders import get_folders
from agent_relay.system.kept_reports import find_report


def run(words: list[str]) -> int:
    """The exit status; where nothing changed since the same was asked, nothing is read again."""
    report = find_report(get_folders().reports, build_question(words))
    if report:
        sys.stdout.write(report)
        return ExitCode.DONE
    return _answer_anew(words)


def _answer_anew(words: list[str]) -> int:
    """The exit status. Words understood here need no typer, which is as dear as all the answer needs."""
    # msgspec takes from it what Python has, too, and it is as dear to load as all of msgspec.
    with Calmly(), Absent("typing_extensions"):
        from agent_relay.faces.cli.metrics.answer import answer
        from agent_relay.faces.cli.metrics.asked import parse_plain
    asked = parse_plain(words)
    if asked is None:
        return _load_command()(words)
    with Calmly():
        # Nearly all it makes lasts as long as it does.
        answer(asked, words)
    return ExitCode.DONE


def _load_command() -> Callable[[list[str]], int]:
    """What understands any words."""
    with Calmly():
        from agent_relay.faces.cli.metrics.command import run as run_any
    return run_any
