"""One proxy for all who only send something through it."""

from collections.abc import Iterator

import pytest

from tests.support.proxied import RunningProxy, run_proxy


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    """A proxy at work, to which each test adds legs of its own."""
    with run_proxy(f"{tmp_path_factory.mktemp('proxy')}") as found:
        yield found
