"""Play a share of a test's many cases: `make test` takes minutes, `make every` plays all of them.

A test says what it can do without by `@pytest.mark.share(4)`: one in four of its cases is played. Which ones
follows from their names alone, so that a red case is red again.
"""

import hashlib
import os
from collections import defaultdict

import pytest

EVERY = "EVERY"
"""The variable of the environment that has every case played."""


def plays_every_case() -> bool:
    """Return whether nothing is left out."""
    return bool(os.environ.get(EVERY))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not in its test's share."""
    if plays_every_case():
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("share"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = {case for group in cases.values() for case in _choose_left_out(group)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _choose_left_out(group: list[pytest.Item]) -> list[pytest.Item]:
    marker = group[0].get_closest_marker("share")
    assert marker is not None
    played = -(-len(group) // int(marker.args[0]))
    return sorted(group, key=lambda item: hashlib.sha256(item.name.encode()).digest())[played:]
