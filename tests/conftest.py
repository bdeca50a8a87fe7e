"""What holds for all tests: signals as in a login shell, limits that cover cleaning up, no deadlines."""

from hypothesis import settings

from tests.support.default_signals import restore_default_signals
from tests.support.hard_limit import pytest_timeout_set_timer

__all__ = ["pytest_timeout_set_timer"]

restore_default_signals()
# An example of a property takes as long as the machine is busy.
settings.register_profile("house", deadline=None)
settings.load_profile("house")
