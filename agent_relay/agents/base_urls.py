"""Point an agent at relay's proxy: where its providers are now, and what it is told in their place."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from agent_relay.agents.source_paths import fill_text
from agent_relay.domain.documents.agent_configuration import BaseUrl, ProxySpec
from agent_relay.domain.errors import RelayError
from agent_relay.store.proxied_legs import (
    LOOPBACK,
    ProxiedLeg,
    ProxyRoute,
    Upstream,
    build_base_url,
    create_secret,
)
from agent_relay.system.disk.files import read_bounded

_CHANGED = "AGENT_RELAY_BASE_URLS"
_LIMIT_BYTES = 1 << 20
_MOST_ROUTES = 10
# What could be misunderstood as a part of a path of keys, on a command line or in a file, is left alone.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
# Comments, and commas before an end, of JSON as people write it; strings are stepped over.
_STRING = r'"(?:[^"\\]|\\.)*+"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*+[}}\]])", re.DOTALL)


class ProxiedLaunch(msgspec.Struct, frozen=True):
    """The changes to the launch of an agent whose requests pass through the proxy.

    `merges` are variables and the JSON that is merged into what they hold.
    """

    leg: ProxiedLeg
    args: tuple[str, ...]
    env: dict[str, str]
    merges: tuple[tuple[str, str], ...] = ()

    def change(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the agent's environment `env` with what leads it to the proxy, and a note of what changed.

        By the note, whoever is started from within the agent finds what the user set.
        """
        changed = dict(env) | self.env
        for variable, text in self.merges:
            changed[variable] = json.dumps(_merge(_parse_object(changed.get(variable, "")), json.loads(text)))
        if any(name.lower() in _PROXIES[:3] for name in env):
            # Requests to this machine must not be sent to a proxy elsewhere.
            for name in {"NO_PROXY", *(name for name in env if name.lower() == "no_proxy")}:
                changed[name] = ",".join(part for part in (env.get(name, ""), LOOPBACK) if part)
        note = {name: [value, env.get(name)] for name, value in changed.items() if env.get(name) != value}
        return {**changed, _CHANGED: json.dumps(note)}


def restore_base_urls(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the user's environment without the base URLs that relay set for an agent around it."""
    note = _parse_object(environ.get(_CHANGED, ""))
    if not note:
        return environ
    restored = dict(environ)
    for name, values in note.items():
        match values:
            case [str(ours), before] if restored.get(name) == ours:
                del restored[name]
                if isinstance(before, str):
                    restored[name] = before
            case _:
                continue
    return restored


def plan_proxied_launch(
    spec: ProxySpec, values: Mapping[str, str], environ: Mapping[str, str], *, port: int, leg_id: str
) -> ProxiedLaunch | None:
    """Return how the leg's agent is pointed at the proxy that listens at `port`.

    `None` if it has no base URL that could be, or requests would go through a SOCKS proxy. Reads the user's
    configuration files.
    """
    secret, routes = create_secret(), list[ProxyRoute]()
    args, env, merges = list[str](), dict[str, str](), list[tuple[str, str]]()
    for base in spec.urls:
        for name, upstreams, is_users in _find_upstreams(base, values, environ):
            if len(routes) == _MOST_ROUTES:
                break
            prefix = urlsplit(upstreams[-1].url).path
            url = build_base_url(port, leg_id, secret, len(routes), prefix)
            routes.append(ProxyRoute(upstreams, prefix))
            args += [word.replace("{url}", url).replace("{name}", name) for word in base.args]
            if base.merge:
                merges.append((base.variable, base.merge.replace("{url}", url).replace("{name}", name)))
            elif base.variable:
                env[base.variable] = url
            env |= {} if is_users else base.env
    proxies = {name: value for name, value in environ.items() if name.lower() in _PROXIES}
    if not routes or any("socks" in urlsplit(value).scheme for value in proxies.values()):
        return None
    certificates = tuple(environ[name] for name in spec.certificates if environ.get(name))
    leg = ProxiedLeg(secret, tuple(routes), spec.keeps, spec.sides, proxies, certificates)
    return ProxiedLaunch(leg, tuple(args), env, tuple(merges))


def _find_upstreams(
    base: BaseUrl, values: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[tuple[str, tuple[Upstream, ...], bool]]:
    """Yield the name a star stands for, the upstreams, and whether they are the user's own."""
    found: dict[str, object] = {}
    documents = list(_read_documents(base, values, environ))
    if base.path:
        for document in documents:
            found |= dict(_iterate_at(document, base.path.split("/")))
    if base.variable and not base.merge and environ.get(base.variable):
        found = {"": environ[base.variable]}
    for name, value in found.items():
        url = _check_url(value)
        if url and (not name or _PLAIN_NAME.fullmatch(name)):
            yield name, (Upstream(url),), True
    has_needed = not base.needs or any(list(_iterate_at(one, base.needs.split("/"))) for one in documents)
    if not found and base.upstream and has_needed:
        others = (Upstream(url, header) for header, url in base.headers.items())
        yield "", (*others, Upstream(base.upstream)), False


def _read_documents(
    base: BaseUrl, values: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[Mapping[str, object]]:
    for form in base.files:
        path = fill_text(form, values, environ)
        try:
            text = read_bounded(path, limit_bytes=_LIMIT_BYTES).decode() if path else ""
            yield tomllib.loads(text) if (path or "").endswith(".toml") else _parse_object(text)
        except (OSError, RelayError, ValueError, RecursionError):
            # Not there, or not understood: the agent says so itself, and works without the proxy.
            continue
    if base.merge:
        yield _parse_object(environ.get(base.variable, ""))


def _parse_object(text: str) -> dict[str, object]:
    """Parse an object of JSON as people write it, with comments; empty if it is none."""
    plain = _LAST_COMMA.sub(_keep_string, _COMMENT.sub(_keep_string, text))
    try:
        found = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _keep_string(match: re.Match[str]) -> str:
    return match[1] or " "


def _iterate_at(value: object, steps: Sequence[str], name: str = "") -> Iterator[tuple[str, object]]:
    """Yield what the path leads to, with the name that its star stands for."""
    if not steps:
        yield name, value
    elif isinstance(value, dict):
        for key in list(value) if steps[0] == "*" else [steps[0]]:
            if key in value:
                yield from _iterate_at(value[key], steps[1:], str(key) if steps[0] == "*" else name)


def _check_url(value: object) -> str:
    """Return a base URL without the slash at its end; empty if no request can be sent to it."""
    if not isinstance(value, str) or not value.isascii() or any(mark in value for mark in "{}?# \t\r\n"):
        return ""
    try:
        parts = urlsplit(value)
        is_plain = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
        # A port that is none is found only when it is asked for.
        is_plain = is_plain and parts.port != 0
        return value.rstrip("/") if is_plain else ""
    except ValueError:
        return ""


def _merge(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[name] = _merge(known, value)
        else:
            merged[name] = value
    return merged
