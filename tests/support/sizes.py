"""The sizes of a run of the tests: what `make check`, `make test`, `make every` and `make bench` play.

`@pytest.mark.size("test")` on a test, on one of its cases or on a whole module says which of them plays it
first; each plays what those before it do, but for `bench`, which stands alone. What has no mark is as its
folder in `FOLDERS` says, and elsewhere part of them all. A run by hand plays everything but measurements.
"""

import os
from collections.abc import Callable, Collection, Iterable

import pytest
from hypothesis import settings

SIZES = ("check", "test", "every")
BENCH = "bench"
FOLDERS = {"e2e": "every", "real": "every"}
_TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make` gives."""
    parser.addoption("--size", choices=(*SIZES, BENCH), default="every", help="which cases are played")


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of each property where a run is repeated again and again."""
    if config.getoption("--size") == "check":
        settings.load_profile("quick")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what belongs to a larger run."""
    chosen = config.getoption("--size")
    played = {BENCH} if chosen == BENCH else {*SIZES[: SIZES.index(chosen) + 1]}
    left_out = [item for item in items if find_size(item) not in played]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if find_size(item) in played]


def find_size(item: pytest.Item) -> str:
    """The size of a case: its own mark, or else its test's, its module's or its folder's."""
    for node in reversed(item.listchain()):
        for mark in reversed(node.own_markers):
            if mark.name == "size":
                (size,) = mark.args
                assert size in (*SIZES, BENCH), f"{item.nodeid}: no run is called {size!r}"
                return str(size)
    return FOLDERS.get(os.path.relpath(item.path, _TESTS).split(os.sep)[0], SIZES[0])


def sized(
    cases: Iterable[object],
    chosen: Collection[object],
    size: str = "test",
    *,
    name: Callable[[object], str] = str,
) -> list[object]:
    """Mark the `chosen` ones of `cases` with a size; the others keep their test's. `name` names each."""
    marked = [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.size(size)] if case in chosen else [],
            id=name(case),
        )
        for case in cases
    ]
    assert sum(bool(one.marks) for one in marked) == len(chosen), "a chosen case is none of the cases"
    return [*marked]
