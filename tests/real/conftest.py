"""Fixtures for tests that drive the real agents: the pinned programs, and a fresh world for each test."""

import os
from collections.abc import Iterator

import pytest

from tests.support.install_clis import get_clis_folder, install_clis
from tests.support.real import World, open_world

TEST_LIMIT_S = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every wait in here has a limit of its own; a busy machine may need most of several."""
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.timeout(TEST_LIMIT_S))


@pytest.fixture(scope="session", autouse=True)
def _clis() -> None:
    """The four pinned agents are installed before the first test; quick when they are already there."""
    install_clis(get_clis_folder(dict(os.environ)))


@pytest.fixture
def world() -> Iterator[World]:
    """A world of its own, with an API key for gemini."""
    with open_world() as opened:
        yield opened


@pytest.fixture
def google_world() -> Iterator[World]:
    """A world of its own, with a Google login for gemini."""
    with open_world(google_login=True) as opened:
        yield opened
