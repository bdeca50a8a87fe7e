"""Print a cached report that is still valid; otherwise load what makes a new one."""

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
    """Run `agent-relay metrics`; return its exit status.

    If nothing changed since the same was asked, the cached report is printed and nothing is read again.
    """
    report = find_report(get_folders().reports, build_cache_key(words))
    if report:
        sys.stdout.write(report)
        return ExitCode.DONE
    return _answer_anew(words)


def _answer_anew(words: list[str]) -> int:
    """Make and print a new report; return the exit status.

    Words that `parse_options` knows need no typer, which costs as much to load as all the report needs.
    """
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
    """Load msgspec, which decodes records, without imports that cost as much as it does.

    Those are Python's back ports, `platform`, and the modules that describe types.
    """
    load_lean(
        _CODEC,
        lambda: importlib.import_module(_CODEC),
        HiddenModule("typing_extensions"),
        StubbedModule(f"{_CODEC}.inspect"),
        StubbedModule(f"{_CODEC}._json_schema"),
        StubbedModule("platform", is_mute=True),
    )


def _load_command() -> Callable[[list[str]], int]:
    """Return the command that parses any words."""
    with NoGarbageCollection():
        from agent_relay.faces.cli.metrics.command import run as run_any
    return run_any
