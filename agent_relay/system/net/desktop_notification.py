"""Show a notification on the desktop that an environment belongs to, if there is one."""

import html
import os
import shutil
from collections.abc import Mapping

from agent_relay.system.programs import Ending, run_program
from agent_relay.system.spawn import keep_absolute

_PROGRAM = "notify-send"
_LIMIT_S = 5.0
_KEPT = ("HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "LANG")
"""What the program needs to reach the desktop; it gets nothing else of the environment, keys included."""


def find_desktop(environ: Mapping[str, str]) -> str:
    """Return the program that shows a notification; empty without one, or without a session bus."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    has_bus = bool(environ.get("DBUS_SESSION_BUS_ADDRESS")) or (
        os.path.isabs(runtime) and os.path.exists(os.path.join(runtime, "bus"))
    )
    if not has_bus:
        return ""
    return shutil.which(_PROGRAM, path=keep_absolute(environ.get("PATH", ""))) or ""


def show_on_desktop(environ: Mapping[str, str], title: str, text: str, *, limit_s: float = _LIMIT_S) -> str:
    """Show the notification; return why that failed, empty if it did not, or if there is no desktop.

    The program runs in this process's folder, which is `/` where the daemon asks: no folder is kept in use.
    """
    program = find_desktop(environ)
    if not program:
        return ""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    # Desktops read the text, and only the text, as a little HTML.
    command = [program, "--app-name=agent-relay", "--", title, html.escape(text, quote=False)]
    answer = run_program(
        command, limit_s=limit_s, environ={**kept, "PATH": keep_absolute(environ.get("PATH", ""))}
    )
    match answer.ending:
        case Ending.LATE | Ending.LONG:
            return answer.ending.name.lower()
        case Ending.NOT_STARTED:
            return type(OSError(answer.errno, answer.why)).__name__
    return f"status-{answer.status}" if answer.status else ""
