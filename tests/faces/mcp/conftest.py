"""What the tests of the agents' tools share."""

from collections.abc import Iterator

import pytest

from tests.support.at_work import working_world
from tests.support.relay_world import RelayWorld


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with working_world() as made:
        yield made
