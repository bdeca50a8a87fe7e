"""What becomes of an installation while agents go on calling its hooks."""

import os
import shutil
import sys
from pathlib import Path

from agent_relay.agents.launch import HOOK_PATH


def install(place: Path) -> Path:
    """A Python and a hook entry of their own, to be broken."""
    place.mkdir(parents=True)
    os.symlink(sys.executable, place / "python")
    shutil.copy(HOOK_PATH, place / "hook.py")
    return place


def remove_hook(place: Path) -> None:
    """The package was removed."""
    os.unlink(place / "hook.py")


def remove_python(place: Path) -> None:
    """The environment was removed."""
    os.unlink(place / "python")


def remove_all(place: Path) -> None:
    """The installation was moved."""
    os.rename(place, place.parent / "moved")


def break_hook(place: Path) -> None:
    """An upgrade is half done."""
    (place / "hook.py").write_text('import sys\nprint(\'{"decision": "block"}\'\n', "utf-8")


def break_python(place: Path) -> None:
    """What stands there is no program any more."""
    os.unlink(place / "python")
    (place / "python").write_bytes(b"\x7fELF nothing")
    (place / "python").chmod(0o755)


BREAKS = (remove_hook, remove_python, remove_all, break_hook, break_python)
