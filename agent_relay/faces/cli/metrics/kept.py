"""The door of `agent-relay metrics`: a report that still holds is shown again, and nothing else is loaded."""

import importlib
import sys
from collections.abc import Callable

from agent_relay.domain.errors import ExitCode
from agent_relay.domain.loading import Absent, Calmly, KeptOut, load_lean
from agent_relay.faces.cli.metrics.question import build_question
from agent_relay.system.folders import get_folders
from agent_relay.system.kept_reports import find_report

_CODEC = "msgspec"


def run(words: list[str]) -> int:
    """The exit status; where nothing changed since the same was asked, nothing is read again."""
    report = find_report(get_folders().reports, build_question(words))
    if report:
        sys.stdout.write(report)
        return ExitCode.DONE
    return _answer_anew(words)


def _answer_anew(words: list[str]) -> int:
    """The exit status. Words understood here need no typer, which is as dear as all the answer needs."""
    with Calmly():
        _load_codec()
        from agent_relay.faces.cli.metrics.answer import answer
        from agent_relay.faces.cli.metrics.asked import parse_plain
    asked = parse_plain(words)
    if asked is None:
        return _load_command()(words)
    with Calmly():
        # Nearly all it makes lasts as long as it does.
        answer(asked, words)
    return ExitCode.DONE


def _load_codec() -> None:
    """What decodes records is there, without what is as dear: Python's back ports, what describes types."""
    load_lean(
        _CODEC, lambda: importlib.import_module(_CODEC), Absent("typing_extensions"),
        KeptOut(f"{_CODEC}.inspect"), KeptOut(f"{_CODEC}._json_schema"), KeptOut("platform", is_mute=True),
    )  # fmt: skip


def _load_command() -> Callable[[list[str]], int]:
    """What understands any words."""
    with Calmly():
        from agent_relay.faces.cli.metrics.command import run as run_any
    return run_any
