"""What the shell is in the middle of, told in its own words."""

from agent_relay.faces.cli.relay_prompt import describe, split_words
from agent_relay.faces.shell.commands.face import ShellFace


async def show_status(shell: ShellFace, rest: str) -> None:
    """This session in short; with arguments, and before the first message, what the plain command shows."""
    conversation = shell.conversation
    if rest or not conversation.session:
        shell.run_plain(["status", *split_words(rest)])
        return
    first, *more = describe(conversation.session, conversation.folder)
    if not shell.turns.is_working:
        # Between two turns nothing runs, which is no end.
        first = first.replace(": ended under ", ": between two turns, under ", 1)
    shell.say(first, *more)
