"""Requests, handlers and notices: what the daemon and the application promise each other."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent_relay.domain.errors import WrongUseError


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that asks, as the kernel names it; `client` is its version of agent-relay."""

    pid: int
    uid: int
    client: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `fields` is everything the client sent besides `op` and `id`, unchecked."""

    op: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str, default: str | None = None) -> str:
        """Return the field as text; raise WrongUseError if it is no text or missing without a default."""
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise WrongUseError(f"{self.op} needs {name} as text")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return the field as a whole number; raise WrongUseError as `text` does."""
        value = self.fields.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongUseError(f"{self.op} needs {name} as a whole number")
        return value

    def flag(self, name: str) -> bool:
        """Return the field as yes or no, absent meaning no; raise WrongUseError if it is neither."""
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise WrongUseError(f"{self.op} needs {name} as true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the field as a list of texts, absent meaning none; raise WrongUseError if it is not one."""
        value = self.fields.get(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise WrongUseError(f"{self.op} needs {name} as a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, str]:
        """Return the field as texts by name, absent meaning none; raise WrongUseError if it is not that."""
        value = self.fields.get(name, {})
        if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
            raise WrongUseError(f"{self.op} needs {name} as texts by name")
        return value


Handler = Callable[[Request, Peer], Awaitable[Mapping[str, object]]]
"""Answers one request with the fields of its answer, or raises a RelayError that the client shall see.

It runs to its end even where the client goes away; it is cancelled only when the daemon stops.
"""


class NoticeSender(Protocol):
    """Through which the application reports that something changed."""

    def tell(self, session: str) -> None:
        """Notify subscribers that this session changed. Returns at once; call it in the event loop."""
        ...


class App(Protocol):
    """What the daemon serves."""

    async def start(self) -> None:
        """Take over what an earlier daemon left; the daemon answers requests only after this."""
        ...

    async def stop(self) -> None:
        """Release everything, holders left running. Called once, with a limit on its time."""
        ...

    def handlers(self) -> Mapping[str, Handler]:
        """Return the operations offered, by name."""
        ...
