from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.server_world import build_serve


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., None]:
    """Runs a test's body beside a server on a fresh socket."""
    return build_serve(tmp_path)
