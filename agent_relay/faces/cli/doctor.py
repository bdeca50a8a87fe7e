"""`agent-relay doctor`: what is missing on this machine, one line each, with what to do about it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import typer

from agent_relay import __version__
from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.domain.errors import RelayError
from agent_relay.faces.cli.agents import build_view
from agent_relay.faces.cli.printing import is_fancy, print_json, print_lines
from agent_relay.faces.cli.typed import Function, run_one
from agent_relay.logic.wording import render_sign_in
from agent_relay.system.config import read_project_config, read_user_config
from agent_relay.system.emulator_library import find_library
from agent_relay.system.folders import check_private, get_folders
from agent_relay.system.glances import find_near_root
from agent_relay.system.project import find_project

_VERSION_LIMIT_S = 10.0
_COLOURS = {"ok": "32", "note": "33", "problem": "31"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: `ok`, a `note` that costs something, or a `problem` that must be solved; with a remedy."""

    level: Literal["ok", "note", "problem"]
    what: str
    remedy: str = ""


def run(words: list[str]) -> int:
    """The exit status of `agent-relay doctor`: 0 where nothing has to be solved."""
    return run_one(doctor, words, name="doctor")


def doctor(
    *, as_json: Annotated[bool, typer.Option("--json", help="As JSON: {version, findings}.")] = False
) -> None:
    """What is missing on this machine, one line each. Exit status 1 where something must be solved."""
    findings = list(dict.fromkeys(examine(os.getcwd())))  # one cause may stop several looks
    if as_json:
        print_json({"version": __version__, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            remedy = f" - {finding.remedy}" if finding.remedy else ""
            mark = f"\x1b[{_COLOURS[finding.level]}m" if is_fancy() else ""
            sys.stdout.write(f"{mark}{finding.level:8}{chr(27) + '[0m' if mark else ''}")
            print_lines(f"{finding.what}{remedy}")
    if any(finding.level == "problem" for finding in findings):
        raise typer.Exit(1)


def examine(cwd: str) -> Iterator[Finding]:
    """Everything worth a line, in the order a session needs it."""
    yield Finding("ok", f"agent-relay {__version__} on Python {sys.version.split()[0]}")
    yield from _examine_folders()
    yield from _examine_configuration(cwd)
    yield _examine_emulator()
    yield _examine_git()
    yield _examine_daemon()
    try:
        yield from _examine_agents(cwd)
    except RelayError as error:
        yield Finding("problem", error.sentence, error.hint)


def _examine_folders() -> Iterator[Finding]:
    try:
        folders = get_folders()
    except RelayError as error:
        yield Finding("problem", error.sentence, error.hint)
        return
    for name, folder in (("runtime", folders.runtime), ("state", folders.state), ("config", folders.config)):
        try:
            check_private(folder)
        except FileNotFoundError:
            yield Finding("ok", f"{name} folder {folder} will be made when needed")
        except RelayError as error:
            yield Finding("problem", error.sentence, error.hint)
        else:
            yield Finding("ok", f"{name} folder {folder} is private")


def _examine_configuration(cwd: str) -> Iterator[Finding]:
    root = find_near_root(cwd)
    try:
        read_user_config(get_folders().config)
        read_project_config(root)
        project = find_project(root)
    except RelayError as error:
        yield Finding("problem", error.sentence, error.hint)
        return
    yield Finding("ok", "the configuration can be read")
    yield Finding("ok", f"{root} {'has' if project else 'will get'} a private .agent-relay folder")


def _examine_emulator() -> Finding:
    if find_library() is not None:
        return Finding("ok", "the terminal emulator is here")
    return Finding(
        "note", "no terminal emulator: repaints are rough and screens are not read", "Install pyghostty 0.1.3"
    )


def _examine_git() -> Finding:
    git = shutil.which("git")
    if git is None:
        return Finding("note", "git is not installed: packets say nothing about the tree", "Install git")
    return Finding("ok", f"git is {git}")


def _examine_daemon() -> Finding:
    try:
        with Connection.open(get_folders()) as connection:
            if connection.daemon == __version__:
                return Finding("ok", f"the daemon runs (pid {connection.pid})")
            older = f"the daemon is version {connection.daemon}, this is {__version__}"
            return Finding("note", older, "Run: agent-relay daemon restart")
    except NobodyListensError:
        return Finding("ok", "the daemon will start when needed")
    except RelayError as error:
        return Finding("problem", error.sentence, error.hint)


def _examine_agents(cwd: str) -> Iterator[Finding]:
    every = build_view(cwd, os.environ)
    known = {str(row["name"]) for row in every}
    for name, place in read_user_config(get_folders().config).list_names().items():
        if name not in known:
            what = f"{place} in config.toml names {name}, and there is no such agent"
            yield Finding("problem", what, "See: agent-relay agents")
    rows = [row for row in every if not row["scripted"] and row["place"]]
    for row in rows:
        if not row["program"]:
            yield Finding("note", f"{row['name']} is not installed", "it will be skipped")
        elif not row["signed_in"]:
            yield Finding(
                "note",
                f"{row['name']} is not signed in",
                render_sign_in(str(row["name"]), str(row["sign_in"])),
            )
        else:
            yield _examine_version(row)
    able = [row for row in rows if row["program"] and row["signed_in"]]
    if len(able) < 2:  # noqa: PLR2004 - a handoff takes two
        what = f"{len(able)} agent{'' if len(able) == 1 else 's'} can work here, a handoff takes two"
        yield Finding("problem", what, "Install or sign in to another one; or see it work: agent-relay demo")


def _examine_version(row: dict[str, object]) -> Finding:
    try:
        answer = subprocess.run(
            [str(row["program"]), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Finding("note", f"{row['name']} does not say its version", "start it once by hand")
    said = answer.stdout.decode("utf-8", "replace").strip().splitlines()
    version = said[0][:60] if said else "unknown"
    tested = str(row["tested_version"])
    known = "" if not tested or tested in version else f"; measured with {tested}"
    return Finding("ok", f"{row['name']} {version} at {row['program']}{known}")


FUNCTIONS: dict[str, Function] = {"": doctor}
"""For the generated page of commands."""
