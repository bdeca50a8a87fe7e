"""Let Python look for garbage rarely: it would go through all tests and modules again and again.

They are a million objects that stay until the end. What tests make and drop is found as before, only later.
"""

import gc
from collections.abc import Generator

import pytest

OBJECTS = 50_000
"""How many objects are made between two looks; Python's own 700 are meant for programs that stay small."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for none while tests are gathered, and at none of what was loaded for them from then on."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(OBJECTS)
        gc.enable()
