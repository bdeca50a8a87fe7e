"""Every case laid out once, and its packets scored once, for all tests of the folder."""

import os
from collections.abc import Iterator

import pytest

from tests.fidelity.packets import Workshop, own_folder


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    """Where packets are built; no setting of whoever runs the tests counts."""
    with own_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_RELAY_HOME", os.path.join(folder, "home"))
        yield Workshop(folder)
