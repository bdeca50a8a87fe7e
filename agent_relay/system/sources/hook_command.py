"""The shell words by which an agent calls the hook entry point, safe for any folder name."""

from collections.abc import Sequence


def render_hook_command(python: str, hook_path: str, leg_folder: str) -> str:
    """The `sh -c` command that keeps a hook's payload in `leg_folder`."""
    return _render([python, "-I", "-S", hook_path, "hooks", leg_folder])


def render_status_command(python: str, hook_path: str, leg_folder: str, *, users_own: str = "") -> str:
    """The `sh -c` command that keeps a status in `leg_folder` and shows the user's own status line.

    `users_own` is the shell command the user configured; it gets the same bytes on its stdin.
    """
    words = [python, "-I", "-S", hook_path, "status-line", leg_folder]
    return _render([*words, "--", "sh", "-c", users_own] if users_own else words)


def _render(words: Sequence[str]) -> str:
    """Words in single quotes: nothing in them, not even a newline, means anything to a shell."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
