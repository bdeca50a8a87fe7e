"""Requests, handlers and notices: what the daemon and the application promise each other."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent_relay.domain.errors import WrongUseError


@dataclass(frozen=True, slots=True)
class Peer:
    """Who asks: the other process, as the kernel names it; `client` is its version of agent-relay."""

    pid: int
    uid: int
    client: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `fields` is everything the client sent besides `op` and `id`, unchecked."""

    op: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str, default: str | None = None) -> str:
        """The field as text; raises WrongUseError where it is missing without a default or is no text."""
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise WrongUseError(f"{self.op} needs {name} as text")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """The field as a whole number; raises WrongUseError as `text` does."""
        value = self.fields.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongUseError(f"{self.op} needs {name} as a whole number")
        return value

    def flag(self, name: str) -> bool:
        """The field as yes or no, absent meaning no; raises WrongUseError where it is neither."""
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise WrongUseError(f"{self.op} needs {name} as true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """The field as a list of texts, absent meaning none; raises WrongUseError where it is not that."""
        value = self.fields.get(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise WrongUseError(f"{self.op} needs {name} as a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, str]:
        """The field as texts by name, absent meaning none; raises WrongUseError where it is not that."""
        value = self.fields.get(name, {})
        if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
            raise WrongUseError(f"{self.op} needs {name} as texts by name")
        return value


Handler = Callable[[Request, Peer], Awaitable[Mapping[str, object]]]
"""Answers one request with the fields of its answer, or raises a RelayError that the client shall see.

It runs to its end even where the client goes away; it is cancelled only when the daemon stops.
"""


class NoticeSender(Protocol):
    """Where the application says that something changed."""

    def tell(self, session: str) -> None:
        """Subscribers will ask again about this session. Returns at once; call it in the event loop."""
        ...


class App(Protocol):
    """What the daemon serves."""

    async def start(self) -> None:
        """Takes up what an earlier daemon left; the daemon answers requests only after this."""
        ...

    async def stop(self) -> None:
        """Lets go of everything, holders left running. Called once, with a limit on its time."""
        ...

    def handlers(self) -> Mapping[str, Handler]:
        """The operations offered, by name."""
        ...
