"""The shell command that installs an extra into this very installation, whatever made it."""

import shlex


def render_install(extra: str, *, prefix: str, base_prefix: str, executable: str, settings: str) -> str:
    """Return the command for a shell.

    `prefix`, `base_prefix` and `executable` are `sys`'s, `settings` is the text of the environment's
    `pyvenv.cfg`. All of them take the extra's libraries from what is installed: no index needs to have relay.
    """
    wanted = f"'agent-relay[{extra}]'"
    if "/pipx/venvs/" in f"{prefix}/":
        return f"pipx inject agent-relay {wanted}"
    if any(line.partition("=")[0].strip() == "uv" for line in settings.splitlines()):
        # An environment of uv's, `uv tool install` included, has no pip.
        return f"uv pip install --python {shlex.quote(executable)} {wanted}"
    if prefix == base_prefix:
        return f"{shlex.quote(executable)} -m pip install --user {wanted}"
    return f"{shlex.quote(executable)} -m pip install {wanted}"
