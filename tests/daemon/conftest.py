import asyncio
import inspect
import os
from pathlib import Path

import pytest

from tests.support.server_world import World, play


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    """A server on a fresh socket, which serves while a test that awaits is run."""
    os.chmod(tmp_path, 0o700)
    return World(f"{tmp_path}/sock", **getattr(request, "param", {}))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that awaits, beside the server of its `world`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(play(given["world"], pyfuncitem.obj(**given)))
    return True
