"""Find the terminal emulator's shared library without importing the package that ships it."""

import importlib.util
import os

_NAMES = ("libghostty-vt.so", "libghostty-vt.dylib")


def find_library() -> str | None:
    """Return the path of libghostty-vt in the installed pyghostty wheel, or `None` (musl has no wheel).

    Importing pyghostty would cost 130 ms for declarations we do not use.
    """
    try:
        spec = importlib.util.find_spec("pyghostty")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    folder = os.path.join(os.path.dirname(spec.origin), "_lib")
    return next((path for name in _NAMES if os.path.exists(path := os.path.join(folder, name))), None)
