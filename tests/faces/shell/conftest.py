"""A person at the relay shell, in a world of two scripted agents."""

from collections.abc import Iterator

import pytest

from tests.support.relay_world import RelayWorld
from tests.support.shells import ShellPerson, shell_world


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents."""
    with shell_world() as made:
        yield made


@pytest.fixture
def person(world: RelayWorld) -> ShellPerson:
    """Somebody at the relay shell."""
    return ShellPerson(world)
