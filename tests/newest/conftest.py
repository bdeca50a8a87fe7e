"""Fixtures for the scenes of the newest agents: a fresh world for each."""

from collections.abc import Iterator

import pytest

from tests.support.real import World, open_world


@pytest.fixture
def world() -> Iterator[World]:
    """A world of its own, with an API key for gemini."""
    with open_world() as opened:
        yield opened
