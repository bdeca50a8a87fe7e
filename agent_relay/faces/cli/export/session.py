"""The HTTP session figures are pushed in: to the address the user wrote, and with nobody's secrets."""

import socket
from collections.abc import Callable
from contextvars import ContextVar
from http import HTTPStatus

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from agent_relay.system.deadline import Deadline
from agent_relay.system.resolving import LookUp, Resolver, ask_system
from agent_relay.system.webhook import LATE, describe_failure

_LIMIT_S = 10.0
"""How long one request may take from its beginning to the answer, however often a byte comes."""

_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


class DirectSession(requests.Session):
    """Follows no redirect, which would lead past the address's check, and reads no `.netrc`.

    What is for this machine (`is_near`) is told to no proxy of the environment either. `note` is told after
    each request why it failed, empty where it did not.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        *,
        is_near: bool,
        limit_s: float = _LIMIT_S,
        look_up: LookUp = ask_system,
    ) -> None:
        super().__init__()
        self.trust_env = not is_near
        # Somebody's login for that host, else taken from their `.netrc`, is none of ours.
        self.auth = _add_nothing
        self._note = note
        self._limit_s = limit_s
        self._resolver = Resolver(look_up)
        # Each request has a connection of its own, which ends with it.
        self.headers["Connection"] = "close"
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def send(self, request: requests.PreparedRequest, **options: object) -> requests.Response:
        """The answer without its contents. Raises requests.RequestException where none came in time."""
        with Deadline(self._limit_s, self._resolver) as deadline:
            before = _deadline.set(deadline)
            try:
                answer = super().send(request, **(options | {"stream": True}))
                answer.close()
                if deadline.is_over:  # the library takes the end of a connection for the end of an answer
                    raise requests.ReadTimeout(LATE)
            except (OSError, ValueError) as error:
                self._note(describe_failure(_find_cause(error), is_late=deadline.is_over))
                raise
            finally:
                _deadline.reset(before)
        self._note("" if answer.status_code < HTTPStatus.MULTIPLE_CHOICES else _render(answer))
        return answer

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Nowhere: the redirect itself is the answer, which is no success."""
        del resp
        return None


def _render(answer: requests.Response) -> str:
    return f"it answered {answer.status_code}"


def _find_cause(error: Exception) -> Exception:
    """What the system said, where a library only passed it on."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TimeoutError):
            return cause
        if isinstance(cause, OSError) and cause.strerror and isinstance(cause.errno, int):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


def _add_nothing(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _Adapter(HTTPAdapter):
    """Its connections end with the deadline of the request they are made for."""

    def init_poolmanager(self, *arguments: object, **options: object) -> None:
        """The pools to come are ours."""
        super().init_poolmanager(*arguments, **options)  # type: ignore[arg-type]
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: object) -> object:
        """A proxy's pools are ours, too."""
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager


class _Plain(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        deadline = _deadline.get()
        if deadline is None:
            return super()._new_conn()
        limit_s = self.timeout if isinstance(self.timeout, (int, float)) else None
        made = deadline.connect(
            (self._dns_host, self.port or self.default_port), limit_s, self.source_address
        )
        for option in self.socket_options or ():
            made.setsockopt(*option)
        return made


class _Encrypted(_Plain, HTTPSConnection):
    """Connected as the plain one is, and encrypted."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _Encrypted


_POOLS = {"http": _PlainPool, "https": _EncryptedPool}
