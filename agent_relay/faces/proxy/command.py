"""`agent-relay proxy`: show whether the proxy is on, where it listens, and which sessions use it."""

import os
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
import typer

from agent_relay.faces.render.output import print_json, print_lines, print_table
from agent_relay.store.proxied_legs import LOOPBACK, list_proxied, read_proxied_leg
from agent_relay.store.session_journals import find_leg_session
from agent_relay.system.config_file import read_user_config
from agent_relay.system.disk.folders import Folders, get_folders
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.net.reserved_port import read_running


def show_proxy(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: {enabled, running, pid, address, legs: [...]}.")
    ] = False,
) -> int:
    """Show whether relay's local proxy is on, where it listens, and which agents use it.

    It is off by default: set `proxy = true` in config.toml, and agents started from then on use it. It
    listens on this machine only, starts and stops by itself, and reads limits from status codes and headers.
    What it changes and what it keeps: docs/proxy.md.
    """
    folders = get_folders()
    is_on = read_user_config(folders.config).proxy
    pid, port = _find_running(folders)
    legs = [_describe(folders, leg_id) for leg_id in list_proxied(folders.legs)]
    if as_json:
        address = f"http://{LOOPBACK}:{port}" if pid else ""
        told = [{"session": leg.session, "leg": leg.leg, "providers": list(leg.providers)} for leg in legs]
        print_json({"enabled": is_on, "running": bool(pid), "pid": pid, "address": address, "legs": told})
        return 0
    print_lines(
        "The proxy is on: agents started from now on use it."
        if is_on
        else "The proxy is off: agents reach their providers directly. config.toml: proxy = true",
        f"It listens on {LOOPBACK}:{port} (pid {pid})." if pid else "It is not running.",
    )
    rows = [[leg.session, leg.leg, ", ".join(leg.providers)] for leg in legs]
    print_table(("session", "leg", "providers"), rows, empty="No agent uses it.")
    return 0


class _ShownLeg(msgspec.Struct, frozen=True):
    session: str
    leg: str
    providers: tuple[str, ...]


def _describe(folders: Folders, leg_id: str) -> _ShownLeg:
    found = read_proxied_leg(os.path.join(folders.legs, leg_id))
    upstreams = [one for route in found.routes for one in route.upstreams] if found is not None else []
    names = dict.fromkeys(urlsplit(one.url).netloc for one in upstreams)
    return _ShownLeg(find_leg_session(folders.legs, leg_id), leg_id, tuple(names))


def _find_running(folders: Folders) -> tuple[int, int]:
    """Return process id and port of the proxy; zeros if none runs."""
    if not os.path.exists(folders.proxy_lock):
        return 0, 0
    lock = take_lock(folders.proxy_lock, is_shared=True)
    if lock is None:
        return read_running(folders.proxy_lock)
    os.close(lock)
    return 0, 0
