"""The end of a shell."""

from agent_relay.faces.shell.commands.face import ShellFace


async def leave(shell: ShellFace, rest: str) -> None:
    """The shell ends; nothing else does."""
    del rest
    shell.leave()
