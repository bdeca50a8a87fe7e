"""`agent-relay daemon` and `init`: the process that owns the sessions, and the folders it works with."""

import json
import os
import sys
import time
from typing import Annotated

import typer

from agent_relay.client.autostart import connect_or_start, stop_daemon
from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.domain.errors import DaemonUnreachableError
from agent_relay.faces.cli.typer_runner import AsJson, Functions
from agent_relay.faces.render.output import get_contents, print_either, print_lines
from agent_relay.store.project import open_project
from agent_relay.store.session_index import find_near_root
from agent_relay.system.disk.files import open_stream
from agent_relay.system.disk.folders import get_cwd, get_folders

_TAIL_BYTES = 64 << 10
_FOLLOW_S = 0.5


_NAMES = {"daemon": "version", "started_at": "started at", "crashes": "crash reports"}
"""People's words for fields of the daemon's answer, where they are other words."""


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
    stop_daemon(get_folders())
    start(as_json=as_json)


def status(*, as_json: AsJson = False) -> None:
    """Show whether a daemon runs, which, and since when. Exit status 69 if none answers."""
    try:
        with Connection.open(get_folders()) as connection:
            answer = connection.request("daemon.status")
    except NobodyListensError:
        print_either({"running": False}, "No daemon is running.", as_json=as_json)
        raise typer.Exit(DaemonUnreachableError.code) from None
    view = {"running": True, **get_contents(answer)}
    told = [f"{_NAMES.get(key, key.replace('_', ' '))}: {value}" for key, value in view.items()]
    print_either(view, "The daemon is running.", *told[1:], as_json=as_json)


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
    if as_json:
        parts = [*line.split(" ", 3), "", "", "", ""]
        sys.stdout.write(json.dumps(dict(zip(("at", "level", "event", "about"), parts, strict=False))) + "\n")
    else:
        print_lines(line)


def _say(view: dict[str, object], *, as_json: bool) -> None:
    told = "No daemon was running." if view["pid"] is None else f"The daemon (pid {view['pid']}) has ended."
    if view["running"]:
        told = f"The daemon is running (pid {view['pid']}, version {view['version']})."
    print_either(view, told, as_json=as_json)


DAEMON: Functions = {"start": start, "stop": stop, "restart": restart, "status": status, "logs": logs}
"""The functions by sub-command."""


TEMPLATE = """\
# agent-relay's configuration. Every line is optional; the lines after # show the defaults.

# The agents that may take over, preferred first (also: agent-relay order AGENT…). Default: all installed.
# order = ["AGENT", "AGENT"]

# How many seconds an agent may wait by itself before that counts as a limit.
# patience_s = 300

# When a preferred agent is available again: "offer" it once, go back ("auto"), or "off".
# return = "offer"

# How many seconds after a reset work goes on by itself, or a preferred agent is offered: clocks differ.
# reset_grace_s = 30

# How to alert you when you are not watching: "auto" (by the terminal's bell and notifications, or by the
# desktop's where no terminal is attached), "off", or a list of "bell", "osc", "desktop", "webhook:https://…".
# notify = "auto"

# Continue at the first reset once every agent rests? "ask", true or false. If the daemon was killed meanwhile
# and no terminal is attached, work continues when the next command starts a daemon.
# resume_at_reset = "ask"

# No automatic work during these hours, by relay or by an agent's own timer: "22:00-07:00" or "always".
# quiet_hours = ""

# The key that opens the relay prompt inside an agent's screen; twice sends it to the agent.
# relay_key = "ctrl-]"

# Send agents' requests to their providers through relay's proxy on this machine: docs/proxy.md.
# proxy = false

# Give agents relay's tools to search earlier work, save notes and hand over: docs/mcp.md.
# agent_tools = true

# A limit of one model: "handoff" to the next agent, or keep the same one on its fallback "model".
# model_remedy = "handoff"

# Settings for one agent: arguments of every launch, a model, the model to fall back to at a limit of that one
# (see model_remedy; without it the next agent takes over), the size of the packets it gets in tokens.
# [agents.AGENT]
# args = []
# model = ""
# fallback_model = ""
# budget_tokens = 6000

# A handoff document an agent wrote is also saved beside the packets; near a limit, the agent that would take
# over is started already, unseen and without a prompt, so that a limit costs less time: docs/context.md.
# [handoff]
# save_to_disk = false
# standby = false

# What looks like a secret and is none, so that packets keep it: texts, and patterns of whole values.
# [redaction]
# allow = []
# allow_patterns = []
"""


def init(
    *, as_json: Annotated[bool, typer.Option("--json", help="As JSON: {root, folder, config}.")] = False
) -> None:
    """Prepare this repository and your configuration; harmless when repeated, and never needed."""
    from agent_relay.system.config_file import FILE_NAME, create_config, read_user_config

    root, own = find_near_root(get_cwd()), get_folders().config
    folder = open_project(root)
    config, made = os.path.join(own, FILE_NAME), create_config(own, TEMPLATE)
    read_user_config(own)
    print_either(
        {"root": root, "folder": folder, "config": config, "config_made": made},
        f"{folder} is ready: private, and ignored by git.",
        f"{config} {'was written' if made else 'exists already and was not changed'}.",
        "Next: agent-relay doctor, then agent-relay <agent>",
        as_json=as_json,
    )
