"""What the tests of the agents' tools share."""

from collections.abc import Iterator

import pytest

from tests.support.at_work import WorkingWorld, working_world
from tests.support.mcp_client import tool_client


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A machine with two scripted agents and a daemon."""
    with working_world() as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[WorkingWorld]:
    """The same for tests that begin sessions of their own; a client keeps the server of tools there."""
    with working_world() as made, tool_client(made, "", ""):
        yield made
