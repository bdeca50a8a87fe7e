"""What a command of the shell is given: the conversation, its turns, and the terminal."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell.turns.runner import Turns

Completes = Literal["", "agent", "session", "record", "command", "packet", "model"]


class ShellFace(Protocol):
    """The shell as its commands see it."""

    @property
    def conversation(self) -> Conversation:
        """Which session, which agent."""
        ...

    @property
    def turns(self) -> Turns:
        """What is sent, and what waits."""
        ...

    def say(self, *lines: str) -> None:
        """The lines are on the terminal; control characters in them are shown."""
        ...

    def run_plain(self, words: Sequence[str]) -> int:
        """The exit status of `agent-relay` with `words`, run on this terminal."""
        ...

    def lend_terminal(self) -> AbstractContextManager[None]:
        """Within, somebody else has the terminal."""
        ...

    def do_soon(self, act: "Act") -> None:
        """`act` is done in place of the prompt, which comes back with what is half typed."""
        ...

    def leave(self) -> None:
        """The shell ends after this command."""
        ...


Act = Callable[[ShellFace, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command: its words and what they mean, the plain command that does the same, what it does.

    `more` are further lines of its help; `completes` is what its words can be completed to. Without `act` it
    is the plain command of the same name.
    """

    name: str
    usage: str
    about: str
    plain: str
    act: Act | None = None
    more: tuple[str, ...] = ()
    completes: Completes = ""
