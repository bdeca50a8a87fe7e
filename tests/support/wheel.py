"""Builds the wheel as it would be published."""

import os
import subprocess
import sys

from tests.house import tree

LIMIT_S = 300


def build_wheel(folder: str) -> str:
    """The path of a fresh wheel in `folder`; built by the tools of this environment, without downloads."""
    subprocess.run(
        [
            sys.executable,
            *("-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", folder, tree.CHECKOUT),
        ],
        check=True,
        timeout=LIMIT_S,
    )
    (name,) = [name for name in os.listdir(folder) if name.endswith(".whl")]
    return os.path.join(folder, name)
