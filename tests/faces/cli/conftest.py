"""A user's machine for tests of the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.client.autostart import stop_daemon
from agent_relay.system.disk.folders import get_folders
from tests.faces.cli_run import World, create_world
from tests.faces.terminals import Terminals


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A user without agents or sessions; a daemon that a command started ends with the test."""
    created = create_world(str(tmp_path))
    yield created
    stop_daemon(get_folders(created.environ()))


@pytest.fixture
def terminals(world: World) -> Iterator[Terminals]:
    """The same user with two scripted agents."""
    found = Terminals(world)
    yield found
    found.close()
