"""The files by which the proxy knows a leg: who may use which upstream, and what was seen of its limits."""

import os
import secrets
from collections.abc import Mapping

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import is_ulid
from agent_relay.system.disk.files import read_bounded, write_atomic

_ROUTES_FILE = "proxy.json"
EVIDENCE_FILE = "proxy.jsonl"
"""Lies in the leg's folder; an adapter's source `proxy` names it."""
LOOPBACK = "127.0.0.1"
_LIMIT_BYTES = 1 << 18
_SECRET_BYTES = 24


class Upstream(msgspec.Struct, frozen=True, omit_defaults=True):
    """The target of requests: a base URL without a slash at its end.

    With a `header`, only those that have it.
    """

    url: str
    header: str = ""


class ProxyRoute(msgspec.Struct, frozen=True):
    """One base URL of a leg's agent. Of its upstreams the first that a request's headers fit is used.

    `prefix` is the path its URL on this machine ends with.
    """

    upstreams: tuple[Upstream, ...]
    prefix: str = ""


class ProxiedLeg(msgspec.Struct, frozen=True):
    """The proxy's knowledge of one leg.

    `secret` is part of its address. `keeps` are the response headers that are evidence, in lower case, `*` at
    the end for any further letters, and `sides` what requests begin with that are none of the conversation.
    `environ` are the user's variables about proxies and certificates, and
    `certificates` the files of further certificates that are trusted.
    """

    secret: str
    routes: tuple[ProxyRoute, ...]
    keeps: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    certificates: tuple[str, ...] = ()


_legs = msgspec.json.Decoder(ProxiedLeg)


def create_secret() -> str:
    """Return a new secret for a leg's address."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def build_base_url(port: int, leg_id: str, secret: str, number: int, prefix: str) -> str:
    """Return the URL on this machine that stands in for the leg's route `number`."""
    return f"http://{LOOPBACK}:{port}/{leg_id}.{secret}/{number}{prefix}"


def parse_target(target: str) -> tuple[str, str, int, str] | None:
    """Parse a request's target as leg, secret, number of the route, and the rest; `None` for any other."""
    parts = target.split("/", 3)
    if len(parts) < 3 or parts[0]:  # noqa: PLR2004 - nothing, the leg, the route
        return None
    leg_id, _, secret = parts[1].partition(".")
    number, query, more = parts[2].partition("?")
    rest = f"/{parts[3]}" if len(parts) > 3 else ""  # noqa: PLR2004 - and the rest
    if not is_ulid(leg_id) or not secret or not (number.isascii() and number.isdigit() and len(number) == 1):
        return None
    return leg_id, secret, int(number), f"{query}{more}{rest}"


def write_proxied_leg(leg_folder: str, leg: ProxiedLeg) -> None:
    """Write what the proxy has to know. Raise RelayError."""
    write_atomic(os.path.join(leg_folder, _ROUTES_FILE), msgspec.json.encode(leg), durable=False)


def read_proxied_leg(leg_folder: str) -> ProxiedLeg | None:
    """Read what the proxy has to know; `None` if the leg has no proxy, or its file cannot be trusted."""
    try:
        data = read_bounded(os.path.join(leg_folder, _ROUTES_FILE), limit_bytes=_LIMIT_BYTES)
        return _legs.decode(data)
    except (OSError, RelayError, msgspec.MsgspecError):
        return None


def has_proxy(leg_folder: str) -> bool:
    """Return whether the leg's agent was pointed at the proxy."""
    return os.path.lexists(os.path.join(leg_folder, _ROUTES_FILE))


def list_proxied(legs_folder: str) -> list[str]:
    """Return the ids of the legs whose agents were pointed at the proxy, in their order."""
    try:
        names = sorted(os.listdir(legs_folder))
    except OSError:
        return []
    return [name for name in names if is_ulid(name) and has_proxy(os.path.join(legs_folder, name))]
