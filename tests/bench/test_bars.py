"""Our speed and size beside the peers', measured in one run."""

import os
import subprocess
import sys

import pytest

from tests.support.relay_world import CHECKOUT

pytestmark = pytest.mark.size("bench")


@pytest.mark.timeout(1800)
def test_every_bar_is_kept() -> None:
    """A wrapper people notice is one they stop using; the table says by how much each bar is kept."""
    os.makedirs(os.path.join(CHECKOUT, ".benchmarks"), exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.run", "--json", os.path.join(".benchmarks", "bench.json")],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0
