"""What the tests of sessions at work share."""

from collections.abc import Iterator

import pytest

from tests.support.at_work import WorkingWorld, working_world


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A machine with two scripted agents; who asks first has the daemon started."""
    with working_world(starts=False) as made:
        yield made
