"""Show a cached report that still holds; otherwise load what answers anew."""

import importlib
import sys
from collections.abc import Callable

from agent_relay.domain.documents.lean_imports import (
    HiddenModule,
    NoGarbageCollection,
    StubbedModule,
    load_lean,
)
from agent_relay.domain.errors import ExitCode
from agent_relay.faces.cli.metrics._cache_key import build_cache_key
from agent_relay.system.disk.folders import get_folders
from agent_relay.usage.report_cache import find_report

_CODEC = "msgspec"


def run(words: list[str]) -> int:
    """The exit status; where nothing changed since the same was asked, nothing is read again."""
    report = find_report(get_folders().reports, build_cache_key(words))
    if report:
        sys.stdout.write(report)
        return ExitCode.DONE
    return _answer_anew(words)


def _answer_anew(words: list[str]) -> int:
    """The exit status. Words understood here need no typer, which is as dear as all the answer needs."""
    with NoGarbageCollection():
        _load_codec()
        from agent_relay.faces.cli.metrics._options import parse_options
        from agent_relay.faces.cli.metrics._query import answer_query
    asked = parse_options(words)
    if asked is None:
        return _load_command()(words)
    with NoGarbageCollection():
        # Nearly all it makes lasts as long as it does.
        answer_query(asked, words)
    return ExitCode.DONE


def _load_codec() -> None:
    """What decodes records is there, without what is as dear: Python's back ports, what describes types."""
    load_lean(
        _CODEC,
        lambda: importlib.import_module(_CODEC),
        HiddenModule("typing_extensions"),
        StubbedModule(f"{_CODEC}.inspect"),
        StubbedModule(f"{_CODEC}._json_schema"),
        StubbedModule("platform", is_mute=True),
    )


def _load_command() -> Callable[[list[str]], int]:
    """What understands any words."""
    with NoGarbageCollection():
        from agent_relay.faces.cli.metrics.command import run as run_any
    return run_any
