"""What the daemon loads only where it is used is loaded before an upgrade can take it away."""

import ast
import os
from collections.abc import Iterator

from agent_relay.daemon._application import MODULES
from tests.house import tree

ROOMS = (
    *("daemon", "race", "engine", "usage", "sources", "agents", "store", "terminal", "system"),
    *("packet", "transcripts", "detect", "redact", "session", "domain"),
)
"""What a daemon is made of."""
ELSEWHERE = {
    "agent_relay/daemon/__main__.py": "its start loads them before it answers",
    "agent_relay/domain/protocol/json_text.py": "loaded with its module, in one of two ways",
    "agent_relay/domain/moments.py": "datetime, which is loaded with the daemon",
    "agent_relay/store/usage_windows.py": "files, locks and moments, which the ledger loads with the daemon",
    "agent_relay/system/clock.py": "values, which are loaded with the daemon",
    "agent_relay/transcripts/usage_readers.py": "the daemon loads every reader by it",
    "agent_relay/system/headless_parent.py": "a program of its own",
    "agent_relay/terminal/holder/entry.py": "a program of its own, which has a test of its own",
    "agent_relay/terminal/holder/child.py": "a program of its own, which has a test of its own",
    "agent_relay/usage/gather.py": "a command's, never the daemon's",
    "agent_relay/usage/totals.py": "a race's price, which is shown as unknown without it",
    "agent_relay/system/net/unix_sockets.py": "the daemon's own, loaded before it answers",
}


def find_late_imports() -> Iterator[tuple[str, str]]:
    """Every import inside a function of the daemon's rooms: the file, the module."""
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(tree.CHECKOUT, "agent_relay", room)):
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    for module in read_late_imports(path):
                        yield os.path.relpath(path, tree.CHECKOUT), module


def read_late_imports(path: str) -> Iterator[str]:
    """The modules that functions of one file import."""
    module = tree.parse(path)
    functions = [range(one.lineno, (one.end_lineno or 0) + 1) for one in tree.list_functions(module)]
    for node in tree.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom) and any(node.lineno in one for one in functions):
            if isinstance(node, ast.ImportFrom):
                yield node.module or ""
            else:
                yield from (alias.name for alias in node.names)


def is_loaded(module: str) -> bool:
    """Whether the module, or one below it, which brings it along, is loaded soon after the start."""
    return any(name == module or name.startswith(f"{module}.") for name in MODULES)


def test_every_late_import_of_the_daemon_is_preloaded() -> None:
    """At the limit it is too late: files that have gone end the handoff."""
    found = set(find_late_imports())
    assert ("agent_relay/system/disk/locks.py", "filelock") in found
    missing = {(path, module) for path, module in found if path not in ELSEWHERE and not is_loaded(module)}
    assert sorted(missing) == []
