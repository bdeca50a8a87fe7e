"""Send requests on to the providers: by the user's own proxies, with the provider's certificate verified."""

import os
import ssl
import urllib.request
from collections.abc import AsyncIterable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

import httpcore2 as httpcore

from agent_relay.store.proxied_legs import ProxiedLeg, Upstream

Headers = list[tuple[bytes, bytes]]

CONNECT_S = 30.0
# Closed long before a provider would close one, which could be while a request is on its way.
_IDLE_S = 15.0
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade", b"expect", b"host")
)
_REFUSED = (httpcore.ConnectError, httpcore.ProxyError, httpcore.UnsupportedProtocol, ssl.SSLError)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class UnreachableError(Exception):
    """The provider could not be reached, and got nothing of the request; the text says why."""


class Upstreams:
    """The connections to all providers, one pool for each proxy and set of certificates in use."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, tuple[str, ...]], httpcore.AsyncConnectionPool] = {}

    async def send(
        self,
        leg: ProxiedLeg,
        upstream: Upstream,
        rest: str,
        *,
        method: bytes,
        headers: Headers,
        body: AsyncIterable[bytes],
    ) -> httpcore.Response:
        """Send a request to `upstream` and return the response as soon as its headers are there.

        `rest` is what follows the upstream's URL. Close the response, whatever happens. Raise
        UnreachableError, or httpcore's NetworkError or ProtocolError if the connection ended early.
        """
        url = urlsplit(upstream.url)
        target = httpcore.URL(
            scheme=url.scheme.encode(),
            host=(url.hostname or "").encode("idna"),
            port=url.port,
            target=(url.path + rest or "/").encode("ascii"),
        )
        host = url.netloc.rpartition("@")[2].encode()
        request = httpcore.Request(
            method,
            target,
            headers=[(b"Host", host), *pass_on(headers)],
            content=body,
            extensions={"timeout": {"connect": CONNECT_S}},
        )
        try:
            return await self._get_pool(leg, upstream).handle_async_request(request)
        except httpcore.ConnectTimeout as error:
            raise UnreachableError(f"no connection within {CONNECT_S:g} s") from error
        except _REFUSED as error:
            raise UnreachableError(str(error) or type(error).__name__) from error
        except OSError as error:
            raise UnreachableError(error.strerror or type(error).__name__) from error

    async def close(self) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            await pool.aclose()

    def _get_pool(self, leg: ProxiedLeg, upstream: Upstream) -> httpcore.AsyncConnectionPool:
        proxy = find_user_proxy(leg.environ, upstream.url)
        key = (proxy, leg.certificates)
        if key not in self._pools:
            self._pools[key] = httpcore.AsyncConnectionPool(
                ssl_context=build_context(leg.certificates),
                proxy=_build_proxy(proxy) if proxy else None,
                max_connections=None,
                keepalive_expiry=_IDLE_S,
            )
        return self._pools[key]


def pass_on(headers: Headers) -> Headers:
    """Return the headers that are not about one connection alone, in their order and spelling.

    A request to change the protocol is passed on; so is its answer.
    """
    named = {
        word.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    dropped = (_HOP_BY_HOP | named) - ({b"upgrade"} if b"upgrade" in named else set())
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        # Chunks tell where the body ends: a length beside them would let the two sides disagree.
        dropped |= {b"content-length"}
    kept = [(name, value) for name, value in headers if name.lower() not in dropped]
    return [*kept, (b"Connection", b"Upgrade")] if b"upgrade" in named else kept


def build_context(certificates: Sequence[str] = ()) -> ssl.SSLContext:
    """Return a context that verifies certificates by the machine's roots and the user's further files.

    A file that cannot be read adds nothing, as for the agents themselves.
    """
    context = httpcore.default_ssl_context()
    for path in certificates:
        try:
            context.load_verify_locations(path)
        except OSError:
            continue
    return context


def has_roots() -> bool:
    """Return whether this machine has root certificates, without which no provider can be verified."""
    folder = ssl.get_default_verify_paths().openssl_capath
    in_files = build_context().cert_store_stats()["x509_ca"] > 0
    return in_files or (os.path.isdir(folder) and any(name.endswith(".0") for name in os.listdir(folder)))


def find_user_proxy(environ: Mapping[str, str], url: str) -> str:
    """Return the proxy that the user's variables name for `url`; empty for none."""
    parts = urlsplit(url)
    names = (f"{parts.scheme}_proxy", "all_proxy")
    found = next((value for name in names if (value := _get_either(environ, name))), "")
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    host = f"{parts.hostname}:{port}"
    spared = {"no": _get_either(environ, "no_proxy")}
    if not found or urllib.request.proxy_bypass_environment(host, spared):  # type: ignore[attr-defined]
        return ""
    return found if "://" in found else f"http://{found}"


def _get_either(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "") or environ.get(name.upper(), "")


def _build_proxy(address: str) -> httpcore.Proxy:
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    url = f"{parts.scheme}://{host}:{parts.port or _DEFAULT_PORTS.get(parts.scheme, 1080)}"
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(url, auth=auth)
