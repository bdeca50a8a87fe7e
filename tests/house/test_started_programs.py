"""`make check` leaves out whatever starts programs, and only that."""

from functools import partial

import pytest

from agent_relay.engine.proxy_keeper import ProxyKeeper
from agent_relay.system.limited_process import LimitedProcess
from tests.house import tree
from tests.support.at_work import working_world
from tests.support.legs import hold
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.seats import seat
from tests.support.shells import ShellPerson
from tests.support.started_programs import starts_programs
from tests.support.window_traces import build_trace


class _Machine:
    """Something a test made for itself."""

    @property
    def world(self) -> object:
        """A daemon is a few names away."""
        return working_world()


@pytest.fixture
def machine() -> _Machine:
    """The same as a fixture."""
    return _Machine()


@pytest.mark.parametrize(
    "used",
    [
        *(working_world, RelayWorld, hold, seat, ShellPerson, _Machine, machine, partial(hold, "here")),
        *(LimitedProcess, ProxyKeeper),
    ],
)
def test_what_leads_to_a_program_is_found_however_far_away_it_is(used: object) -> None:
    """A mark that somebody has to remember is forgotten: one check of ten minutes is one that nobody runs."""
    assert starts_programs(used)


@pytest.mark.parametrize("used", [build_trace, wait_until, tree.tracked_files])
def test_what_starts_no_daemon_agent_or_terminal_is_checked_before_every_commit(used: object) -> None:
    """It stands beside functions that do, and is not one of them."""
    assert not starts_programs(used)


def test_every_test_of_a_real_agent_stands_where_make_test_looks_for_it() -> None:
    """Its workers load that folder alone; a test elsewhere would never be run."""
    mark = "mark." + "real"
    marked = [name for name in tree.python_files("tests") if mark in tree.read_text(name)]
    assert [name for name in marked if not name.startswith("tests/real/")] == []
    assert len(marked) > 30
