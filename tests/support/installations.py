"""A copy of our own package, to be moved, replaced and removed while something runs from it."""

import os
import re
import shutil
import sys

from agent_relay.system.disk.removal import remove_tree
from tests.house import tree


class Installation:
    """The package and its data below `folder`, as an installation of `version` has them."""

    def __init__(self, folder: str, *, version: str = "") -> None:
        self.folder = folder
        for name in ("agent_relay", "adapters", ".agent-relay.example"):
            shutil.copytree(
                os.path.join(tree.CHECKOUT, name),
                os.path.join(folder, name),
                symlinks=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        if version:
            path = os.path.join(folder, "agent_relay", "__init__.py")
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', text))

    @property
    def environ(self) -> dict[str, str]:
        """What makes `python -m agent_relay` this one."""
        return {"PYTHONPATH": self.folder}

    @property
    def daemon(self) -> str:
        """The path of its daemon's program."""
        return os.path.join(self.folder, "agent_relay", "daemon", "__main__.py")

    def command(self, *words: str) -> list[str]:
        """The command line of its `agent-relay`, in `environ`."""
        return [sys.executable, "-m", "agent_relay", *words]

    def move_away(self) -> None:
        """Nothing of it stands where it was."""
        os.rename(self.folder, f"{self.folder}.moved")

    def bring_back(self) -> None:
        """It stands where it was."""
        # Python makes folders for the byte code of a module that it was loading when all was moved away.
        remove_tree(self.folder)
        os.rename(f"{self.folder}.moved", self.folder)
