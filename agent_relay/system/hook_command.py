"""The shell command by which an agent calls `hook.py`, harmless when that file or its Python is gone."""

import os
import shlex
import sys

import agent_relay

HOOK_PATH = os.path.join(os.path.dirname(os.path.abspath(agent_relay.__file__)), "hook.py")

# `$0` is Python, `$1` hook.py, `$2` its first argument. A hook's status 2 blocks the prompt, and it is
# Python's own for a script that is gone and a shell's that cannot start another process: the trap has the
# last word. What an agent reads of its hooks becomes part of its conversation, so that nothing is said. A
# status line is the user's own command (behind `--`) where ours cannot be run.
_GUARD = """\
if [ "$2" = status-line ]; then
  [ -x "$0" ] && [ -r "$1" ] && exec "$0" -I -S "$@"
  shift 3
  [ "$1" = -- ] && shift && exec "$@"
  exit 0
fi
trap "exit 0" 0
exec 2>/dev/null
"$0" -I -S "$@" >&2
exit 0"""


def build_hook_command(*, python: str = sys.executable, hook: str = HOOK_PATH) -> str:
    """Return the shell command of the hook entry, to be followed by its arguments.

    Whatever becomes of `python` and `hook` later, `hooks FOLDER` prints nothing and ends with 0.
    """
    return shlex.join(["/bin/sh", "-c", _GUARD, python, hook])
