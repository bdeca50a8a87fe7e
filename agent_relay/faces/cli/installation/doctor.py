"""`agent-relay doctor`: check the installation, one line per finding, each with what to do."""

import contextlib
import os
import signal
import sys
from collections.abc import Generator, Iterator
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from agent_relay import __version__
from agent_relay.agents.catalog import read_catalog
from agent_relay.client.autostart import START_LIMIT_S, find_start_fault
from agent_relay.client.connection import Connection, NobodyListensError, find_daemon_pid
from agent_relay.client.turn_follower import Interrupted, SignalTrap
from agent_relay.domain.errors import DaemonUnreachableError, RelayError
from agent_relay.domain.text.plain import render_count
from agent_relay.faces.cli.installation._findings import (
    LIMIT_S,
    CheckResult,
    PendingAnswers,
    examine_versions,
    open_report,
)
from agent_relay.faces.cli.roster.agents import build_view
from agent_relay.faces.cli.session.health import list_damaged, put_aside
from agent_relay.faces.cli.session.lookup import find_root_here
from agent_relay.faces.render.output import print_json, print_lines
from agent_relay.session.views.messages import render_sign_in
from agent_relay.store.project import check_project
from agent_relay.store.session_index import find_near_root
from agent_relay.store.tree_owner import find_stranger, read_owner
from agent_relay.system.config_file import read_project_config, read_user_config
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.system.disk.removal import check_usable
from agent_relay.system.processes import is_frozen
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.ghostty import EmulatorError
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder_client import HolderCheck


def doctor(
    *,
    aside: Annotated[
        str,
        typer.Option(
            "--put-aside",
            help="Move this session, whose journal cannot be read, out of the way; its files are kept.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {version, findings}.")] = False,
) -> int:
    """Check this installation, one line per finding. Exit status 1 if something must be solved."""
    if aside:
        session, folder = put_aside(get_folders(), aside, find_root_here())
        if as_json:
            print_json({"session": session, "folder": folder})
        else:
            print_lines(f"Session {session} was put aside; its files are in {folder}")
        return 0
    findings = examine(get_cwd())
    # What is asked has a session of its own: whatever ends us must end it first.
    with SignalTrap((signal.SIGTERM, signal.SIGHUP)) as signals:
        try:
            with signals.breaking(), contextlib.closing(findings):
                return _report(findings, as_json=as_json)
        except Interrupted:
            return 128 + signals.number


def _report(findings: Iterator[CheckResult | PendingAnswers], *, as_json: bool) -> int:
    """Show the findings, each at once or all in one JSON document; return the exit status."""
    shown: dict[CheckResult, None] = {}
    with open_report(quiet=as_json) as report:
        for finding in findings:
            if isinstance(finding, PendingAnswers):
                report.show(finding)
            elif finding not in shown:  # one cause may stop several looks
                shown[finding] = None
                report.show(finding)
    if as_json:
        print_json({"version": __version__, "findings": [asdict(finding) for finding in shown]})
    return int(any(finding.level == "problem" for finding in shown))


def examine(cwd: str) -> Generator[CheckResult | PendingAnswers]:
    """Yield the findings in the order a session needs what they are about, and who is asked meanwhile."""
    yield CheckResult("ok", f"agent-relay {__version__} on Python {sys.version.split()[0]}")
    yield from _examine_folders()
    yield from _examine_configuration(cwd)
    yield from _examine_owner(cwd)
    yield _examine_emulator()
    yield PendingAnswers(("the daemon",), START_LIMIT_S)
    yield _examine_daemon()
    yield PendingAnswers((), START_LIMIT_S)
    yield from _examine_sessions(cwd)
    try:
        yield from _examine_agents(cwd)
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)
        yield from examine_versions(())  # git is there all the same


_COSTS = {
    "config": "agent-relay can change no setting of yours",
    "cache": "usage is read anew each time it is asked for",
}
"""What it costs where a folder cannot be written to that no session needs."""


def _examine_folders() -> Iterator[CheckResult]:
    try:
        folders = get_folders()
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)
        return
    for name in ("runtime", "state", "config", "cache"):
        folder = str(getattr(folders, name))
        try:
            is_there = check_usable(folder)
        except RelayError as error:
            cost = _COSTS.get(name, "")
            level: Literal["note", "problem"] = "note" if cost else "problem"
            yield CheckResult(level, f"{error.sentence}{': ' if cost else ''}{cost}", error.hint)
        else:
            how = "can be written to by you alone" if is_there else "can be made when needed"
            yield CheckResult("ok", f"{name} folder {folder} {how}")


def _examine_owner(cwd: str) -> Iterator[CheckResult]:
    """Yield a finding if another owner has the working tree, or may have it."""
    try:
        stranger = find_stranger(find_near_root(cwd), read_owner(get_folders().runtime))
    except RelayError as error:
        yield CheckResult("note", error.sentence, error.hint)
        return
    if stranger is not None:
        yield CheckResult("problem", stranger.sentence, stranger.hint)


def _examine_configuration(cwd: str) -> Iterator[CheckResult]:
    root = find_near_root(cwd)
    try:
        has = "has" if check_project(root) else "can get"
        yield CheckResult("ok", f"{root} {has} an .agent-relay folder that can be written to")
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)
    try:
        read_user_config(get_folders().config)
        read_project_config(root)
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)
    else:
        yield CheckResult("ok", "the configuration can be read")


def _examine_emulator() -> CheckResult:
    library = find_library()
    cost = "repaints are rough and screens are not read"
    if library is None:
        return CheckResult("note", f"no terminal emulator: {cost}", "Install pyghostty 0.1.3")
    try:
        Emulator(library, 80, 24)  # which tests what it does
    except (EmulatorError, OSError) as error:
        return CheckResult(
            "note", f"the terminal emulator does not work: {error}; {cost}", "Install pyghostty 0.1.3"
        )
    return CheckResult("ok", "the terminal emulator works")


def _examine_daemon() -> CheckResult:
    who = ""
    try:
        folders = get_folders()
        pid = find_daemon_pid(folders) or 0
        who = f"the daemon (pid {pid})" if pid else ""
        if pid and is_frozen(pid):
            what = f"{who} is stopped by a signal or a debugger, so it cannot answer"
            return CheckResult("problem", what, f"Continue it: kill -CONT {pid}")
        with Connection.open(folders, limit_s=LIMIT_S) as connection:
            return _examine_connection(connection)
    except NobodyListensError:
        return _examine_start()
    except DaemonUnreachableError as error:
        return CheckResult("problem", f"{who}{' is there, but ' if who else ''}{error.sentence}", error.hint)
    except RelayError as error:
        return CheckResult("problem", error.sentence, error.hint)


def _examine_connection(connection: Connection) -> CheckResult:
    """Check a daemon that answers: its version, and whether it could start an agent."""
    if connection.daemon != __version__:
        older = f"the daemon is version {connection.daemon}, this is {__version__}"
        return CheckResult("note", older, "Run: agent-relay daemon restart")
    fault = connection.request("daemon.status", limit_s=LIMIT_S).get("trouble")
    if fault:
        return CheckResult("problem", f"the daemon (pid {connection.pid}) can start no agent: {fault}")
    return CheckResult("ok", f"the daemon runs (pid {connection.pid})")


def _examine_start() -> CheckResult:
    """Check whether a daemon and a holder could be started, as no daemon runs now."""
    fault = find_start_fault() or HolderCheck().find_fault()
    if fault:
        return CheckResult("problem", fault, "Try again; where it stays so, install agent-relay again")
    return CheckResult("ok", "the daemon can start, and will when needed")


def _examine_sessions(cwd: str) -> Iterator[CheckResult]:
    try:
        folders = get_folders()
    except RelayError:
        return  # said above
    for session, why in list_damaged(folders, find_near_root(cwd)):
        what = f"session {session} cannot go on: {why}"
        yield CheckResult("note", what, f"Put it aside: agent-relay doctor --put-aside {session}")


def _examine_agents(cwd: str) -> Iterator[CheckResult | PendingAnswers]:
    every = build_view(cwd, os.environ)
    catalog = read_catalog(get_folders(), root=find_near_root(cwd))
    for one in catalog.broken:
        yield CheckResult("problem", f"an adapter is left out: {one.sentence}", one.hint)
    for name, place in read_user_config(get_folders().config).list_names().items():
        if name not in catalog:
            what = f"{place} in config.toml names {name}, which is not an agent"
            yield CheckResult("problem", what, "See: agent-relay agents")
    rows = [row for row in every if not row["scripted"] and row["place"]]
    for row in rows:
        if not row["program"]:
            yield CheckResult("note", f"{row['name']} is not installed", "it will be skipped")
        elif not row["signed_in"]:
            yield CheckResult(
                "note",
                f"{row['name']} is not signed in",
                render_sign_in(str(row["name"]), str(row["sign_in"])),
            )
    ready = [row for row in rows if row["program"] and row["signed_in"]]
    unable = yield from examine_versions(ready)
    able = [row for row in ready if row["name"] not in unable]
    if len(able) < 2:  # noqa: PLR2004 - a handoff takes two
        what = f"{render_count(len(able), 'agent')} can work here, a handoff takes two"
        yield CheckResult(
            "problem", what, "Install or sign in to another one; or see it work: agent-relay demo"
        )
