"""The error for a library that is missing because its extra is not installed."""

import os
import sys

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.text.hints import render_install
from agent_relay.system.disk.files import read_bounded

_LIMIT_BYTES = 1 << 16


def missing_extra(error: ModuleNotFoundError, extra: str) -> ConfigurationError:
    """Return an error that names the missing module and the extra that brings it.

    Raises `error` itself if the module is one of ours.
    """
    if error.name is None or error.name.startswith("agent_relay"):
        raise error
    command = render_install(
        extra,
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        executable=sys.executable,
        settings=_read_settings(),
    )
    return ConfigurationError(f"{error.name} is not installed", hint=f"It comes with: {command}")


def _read_settings() -> str:
    """Return the text of this environment's `pyvenv.cfg`; empty if it cannot be read."""
    try:
        path = os.path.join(sys.prefix, "pyvenv.cfg")
        return read_bounded(path, limit_bytes=_LIMIT_BYTES).decode("utf-8", "replace")
    except (OSError, RelayError):
        return ""
