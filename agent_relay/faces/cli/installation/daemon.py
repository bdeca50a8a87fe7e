"""`agent-relay daemon`: start, stop and look at the process that owns the sessions."""

import json
import os
import sys
import time
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start, stop_daemon
from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.domain.errors import DaemonUnreachableError
from agent_relay.faces.cli.typer_runner import Functions
from agent_relay.faces.render.output import get_contents, print_json, print_lines
from agent_relay.system.disk.files import open_stream
from agent_relay.system.disk.folders import get_folders

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
_TAIL_BYTES = 64 << 10
_FOLLOW_S = 0.5


_NAMES = {"daemon": "version", "started_at": "started at", "crashes": "crash reports"}
"""What people call a field of the daemon's answer, where that is another word."""


def start(*, as_json: AsJson = False) -> None:
    """Start the daemon, if none runs."""
    with connect_or_start(get_folders()) as connection:
        _say({"running": True, "pid": connection.pid, "version": connection.daemon}, as_json=as_json)


def stop(*, as_json: AsJson = False) -> None:
    """Stop the daemon; agents and attached terminals go on."""
    pid = stop_daemon(get_folders())
    _say({"running": False, "pid": pid}, as_json=as_json)


def restart(*, as_json: AsJson = False) -> None:
    """Stop the daemon and start it again: after an upgrade, or when it misbehaves."""
    folders = get_folders()
    stop_daemon(folders)
    with connect_or_start(folders) as connection:
        _say({"running": True, "pid": connection.pid, "version": connection.daemon}, as_json=as_json)


def status(*, as_json: AsJson = False) -> None:
    """Show whether a daemon runs, which, and since when. Exit status 69 if none answers."""
    try:
        with Connection.open(get_folders()) as connection:
            answer = connection.request("daemon.status")
    except NobodyListensError:
        if as_json:
            print_json({"running": False})
        else:
            print_lines("No daemon is running.")
        raise typer.Exit(DaemonUnreachableError.code) from None
    view = {"running": True, **get_contents(answer)}
    if as_json:
        print_json(view)
    else:
        print_lines("The daemon is running.")
        print_lines(
            *(
                f"{_NAMES.get(key, key.replace('_', ' '))}: {value}"
                for key, value in view.items()
                if key != "running"
            )
        )


def logs(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")] = False,
) -> None:
    """Print the end of the daemon's log: events and names, never contents."""
    try:
        file = open_stream(get_folders().daemon_log)
    except FileNotFoundError:
        if not as_json:
            print_lines("The daemon has not written a log yet.")
        return
    with file:
        if os.fstat(file.fileno()).st_size > _TAIL_BYTES:
            file.seek(-_TAIL_BYTES, os.SEEK_END)
            file.readline()
        while True:
            line = file.readline()
            if line.endswith(b"\n") or (line and not follow):
                _print_logged(line.decode("utf-8", "replace").rstrip("\n"), as_json=as_json)
            elif not follow:
                return
            else:
                # Half a line: whoever writes it has not finished.
                file.seek(-len(line), os.SEEK_CUR)
                sys.stdout.flush()
                time.sleep(_FOLLOW_S)


def _print_logged(line: str, *, as_json: bool) -> None:
    if not as_json:
        return print_lines(line)
    at, level, event, about = [*line.split(" ", 3), "", "", "", ""][:4]
    sys.stdout.write(json.dumps({"at": at, "level": level, "event": event, "about": about}) + "\n")
    return None


def _say(view: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(view)
    elif view["running"]:
        print_lines(f"The daemon is running (pid {view['pid']}, version {view['version']}).")
    else:
        print_lines(
            "No daemon was running." if view["pid"] is None else f"The daemon (pid {view['pid']}) has ended."
        )


DAEMON: Functions = {
    "start": start,
    "stop": stop,
    "restart": restart,
    "status": status,
    "logs": logs,
}
"""By sub-command."""
