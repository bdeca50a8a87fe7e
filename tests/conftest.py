"""What holds for all tests: sizes, signals, limits on cleanup, no deadlines, a sparing collector."""

from hypothesis import settings

from tests.support.default_signals import restore_default_signals
from tests.support.hard_limit import pytest_timeout_set_timer
from tests.support.sizes import pytest_addoption, pytest_collection_modifyitems, pytest_configure
from tests.support.sparing_collector import pytest_collection

__all__ = [
    "pytest_addoption",
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_timeout_set_timer",
]

restore_default_signals()
# How long an example takes depends on how busy the machine is.
settings.register_profile("house", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
settings.load_profile("house")
