"""What a command of the shell is given: the conversation, its turns, and the terminal."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell.turns.runner import Turns


class ShellFace(Protocol):
    """The shell as its commands see it."""

    @property
    def conversation(self) -> Conversation:
        """The session and its agent."""
        ...

    @property
    def turns(self) -> Turns:
        """The turns: what is being sent, and what waits."""
        ...

    def say(self, *lines: str) -> None:
        """Print the lines on the terminal, with control characters made visible."""
        ...

    def run_plain(self, words: Sequence[str]) -> int:
        """Run `agent-relay` with `words` on this terminal; return the exit status."""
        ...

    def lend_terminal(self) -> AbstractContextManager[None]:
        """Give the terminal to another program within the returned context."""
        ...

    def do_soon(self, act: "Act") -> None:
        """Run `act` in place of the prompt, which comes back with what is half typed."""
        ...

    def leave(self) -> None:
        """End the shell after this command."""
        ...


Act = Callable[[ShellFace, str], Awaitable[None]]
