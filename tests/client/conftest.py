from collections.abc import Iterator

import pytest

from agent_relay.system.disk.folders import Folders
from tests.support.tiny_client import live_folders


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """Folders of our own; whatever daemon lives in them is ended afterwards."""
    yield from live_folders(monkeypatch)
