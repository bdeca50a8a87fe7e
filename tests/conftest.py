"""What holds for all tests: marks, shares, signals, limits on cleanup, no deadlines, a sparing collector."""

from hypothesis import settings

from tests.support.default_signals import restore_default_signals
from tests.support.hard_limit import pytest_timeout_set_timer
from tests.support.share import pytest_collection_modifyitems
from tests.support.sparing_collector import pytest_collection
from tests.support.started_programs import pytest_itemcollected

__all__ = [
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_itemcollected",
    "pytest_timeout_set_timer",
]

restore_default_signals()
# How long an example takes depends on how busy the machine is.
settings.register_profile("house", deadline=None)
# For `make check`, which is run again and again.
settings.register_profile("quick", deadline=None, max_examples=20)
settings.load_profile("house")
