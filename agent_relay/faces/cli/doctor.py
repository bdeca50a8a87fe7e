"""`agent-relay doctor`: check the installation, one line per finding, each with what to do.

Findings are shown as they come; git and the agents are asked for their versions, all at once.
"""

import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import typer

from agent_relay import __version__
from agent_relay.agents.agent_versions import note_answer
from agent_relay.agents.catalog import read_catalog
from agent_relay.client.autostart import START_LIMIT_S, find_start_fault
from agent_relay.client.connection import Connection, NobodyListensError, find_daemon_pid
from agent_relay.client.turn_follower import Interrupted, SignalTrap
from agent_relay.domain.errors import DaemonUnreachableError, RelayError
from agent_relay.domain.names import find_number, is_newer
from agent_relay.domain.text.plain import find_reason, render_count
from agent_relay.faces.cli.agents import build_view, list_lost_hooks, list_tools_findings
from agent_relay.faces.cli.session.lookup import find_root_here, list_damaged, put_aside
from agent_relay.faces.render.output import is_fancy, plain, print_either, print_json, print_lines
from agent_relay.session.views.messages import render_newer, render_sign_in
from agent_relay.store.project import check_project
from agent_relay.store.session_index import find_near_root
from agent_relay.store.tree_owner import find_stranger, read_owner
from agent_relay.system.config_file import read_project_config, read_user_config
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.system.disk.removal import check_usable
from agent_relay.system.processes import is_frozen
from agent_relay.system.programs import LIMIT_BYTES, Ending, ProgramAnswer, ask_programs
from agent_relay.system.spawn import keep_absolute
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.ghostty import EmulatorError
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder_client import HolderCheck


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One finding: `ok`, a `note` that costs something, or a `problem` that must be solved; with a remedy."""

    level: Literal["ok", "note", "problem"]
    what: str
    remedy: str = ""

    def render(self) -> str:
        """Return the finding on one line."""
        remedy = f" - {self.remedy}" if self.remedy else ""
        return plain(f"{self.level:8}{self.what}{remedy}")


@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """Names of those asked who have not answered yet, for at most `limit_s` seconds; empty once all have."""

    names: tuple[str, ...]
    limit_s: float

    def render(self) -> str:
        """Return who is asked, and for how long."""
        return plain(f"asking {', '.join(self.names)}: at most {self.limit_s:g} s")


_Findings = Iterator[CheckResult | PendingAnswers]
_COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}


def _show_lines(findings: _Findings) -> None:
    """Print a line per finding at once; on a terminal without colours also who is being asked."""
    asked: set[str] = set()
    for finding in findings:
        if isinstance(finding, CheckResult):
            print_lines(finding.render())
        elif sys.stdout.isatty() and not asked.issuperset(finding.names):
            asked |= {*finding.names}
            print_lines(f"A{finding.render()[1:]}")
        sys.stdout.flush()


def _show_live(findings: _Findings) -> None:
    """Show findings in colour above a line that moves until everybody asked has answered."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    console = Console(highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    # What is written beside the columns is ours alone, so nothing needs to be caught.
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        for finding in findings:
            if isinstance(finding, CheckResult):
                line = Text(finding.render())
                line.stylize(_COLOURS[finding.level], 0, len(finding.level))
                console.print(line, soft_wrap=True)
            elif not finding.names:
                for task in progress.task_ids:
                    progress.remove_task(task)
            elif progress.task_ids:
                progress.update(progress.task_ids[0], description=finding.render())
            else:
                progress.add_task(finding.render())


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
        told = f"Session {session} was put aside; its files are in {folder}"
        print_either({"session": session, "folder": folder}, told, as_json=as_json)
        return 0
    # What is asked has a session of its own: whatever ends us must end it first.
    with SignalTrap((signal.SIGTERM, signal.SIGHUP)) as signals:
        try:
            with signals.breaking(), contextlib.closing(examine(get_cwd())) as findings:
                return _report(findings, as_json=as_json)
        except Interrupted:
            return 128 + signals.number


def _take_once(findings: _Findings, taken: list[CheckResult]) -> _Findings:
    """Yield each finding once, as one cause may stop several looks, and add it to `taken`."""
    for finding in findings:
        if isinstance(finding, PendingAnswers):
            yield finding
        elif finding not in taken:
            taken.append(finding)
            yield finding


def _report(findings: _Findings, *, as_json: bool) -> int:
    """Show the findings, each at once or all in one JSON document; return the exit status."""
    taken: list[CheckResult] = []
    found = _take_once(findings, taken)
    if as_json:
        deque(found, maxlen=0)
        print_json({"version": __version__, "findings": [asdict(finding) for finding in taken]})
    elif is_fancy():
        _show_live(found)
    else:
        _show_lines(found)
    return int(any(finding.level == "problem" for finding in taken))


def examine(cwd: str) -> Generator[CheckResult | PendingAnswers]:
    """Yield the findings in the order a session needs what they are about, and who is asked meanwhile."""
    yield CheckResult("ok", f"agent-relay {__version__} on Python {sys.version.split()[0]}")
    yield from _examine_folders()
    yield from _examine_configuration(cwd)
    yield from _examine_owner(cwd)
    yield _examine_emulator()
    yield PendingAnswers(("the daemon",), START_LIMIT_S)
    yield from _examine_daemon()
    yield PendingAnswers((), START_LIMIT_S)
    yield from _examine_sessions(cwd)
    try:
        yield from _examine_agents(cwd)
        yield from (CheckResult("note", *told) for told in list_lost_hooks(cwd, os.environ))
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)
        yield from examine_versions(())  # git is there all the same


_COSTS = {
    "config": "agent-relay can change no setting of yours",
    "cache": "usage is read anew each time it is asked for",
}
"""Consequences where a folder that no session needs cannot be written to."""


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
            what = f"{error.sentence}{': ' if cost else ''}{cost}"
            yield CheckResult("note" if cost else "problem", what, error.hint)
        else:
            how = "can be written to by you alone" if is_there else "can be made when needed"
            yield CheckResult("ok", f"{name} folder {folder} {how}")


def _examine_owner(cwd: str) -> Iterator[CheckResult]:
    """Yield a finding if another owner has the working tree, or may have it."""
    try:
        if stranger := find_stranger(find_near_root(cwd), read_owner(get_folders().runtime)):
            yield CheckResult("problem", stranger.sentence, stranger.hint)
    except RelayError as error:
        yield CheckResult("note", error.sentence, error.hint)


def _examine_configuration(cwd: str) -> Iterator[CheckResult]:
    root = find_near_root(cwd)
    try:
        has = "has" if check_project(root) else "can get"
        yield CheckResult("ok", f"{root} {has} an .agent-relay folder that can be written to")
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)
    try:
        own = read_user_config(get_folders().config)
        read_project_config(root)
        yield CheckResult("ok", "the configuration can be read" + "; standby is on" * own.handoff.standby)
        yield from (CheckResult(*told) for told in list_tools_findings(own))
    except RelayError as error:
        yield CheckResult("problem", error.sentence, error.hint)


def _examine_emulator() -> CheckResult:
    library = find_library()
    cost = "repaints are rough and screens are not read"
    if library is None:
        return CheckResult("note", f"no terminal emulator: {cost}", "Install pyghostty 0.1.3")
    try:
        Emulator(library, 80, 24)  # which tests what it does
    except (EmulatorError, OSError) as error:
        what = f"the terminal emulator does not work: {error}; {cost}"
        return CheckResult("note", what, "Install pyghostty 0.1.3")
    return CheckResult("ok", "the terminal emulator works")


def _examine_daemon() -> Iterator[CheckResult]:
    """Yield a finding about the daemon that runs, or about whether one and a holder could be started."""
    who = ""
    try:
        folders = get_folders()
        pid = find_daemon_pid(folders) or 0
        who = f"the daemon (pid {pid})" if pid else ""
        if pid and is_frozen(pid):
            what = f"{who} is stopped by a signal or a debugger, so it cannot answer"
            yield CheckResult("problem", what, f"Continue it: kill -CONT {pid}")
            return
        with Connection.open(folders, limit_s=LIMIT_S) as connection:
            if connection.daemon != __version__:
                older = f"the daemon is version {connection.daemon}, this is {__version__}"
                yield CheckResult("note", older, "Run: agent-relay daemon restart")
            elif fault := connection.request("daemon.status", limit_s=LIMIT_S).get("trouble"):
                what = f"the daemon (pid {connection.pid}) can start no agent: {fault}"
                yield CheckResult("problem", what)
            else:
                yield CheckResult("ok", f"the daemon runs (pid {connection.pid})")
    except NobodyListensError:
        if why := find_start_fault() or HolderCheck().find_fault():
            yield CheckResult("problem", why, "Try again; where it stays so, install agent-relay again")
        else:
            yield CheckResult("ok", "the daemon can start, and will when needed")
    except RelayError as error:
        is_there = f"{who} is there, but " if who and isinstance(error, DaemonUnreachableError) else ""
        yield CheckResult("problem", f"{is_there}{error.sentence}", error.hint)


def _examine_sessions(cwd: str) -> Iterator[CheckResult]:
    try:
        folders = get_folders()
    except RelayError:
        return  # said above
    for session, why in list_damaged(folders, find_near_root(cwd)):
        remedy = f"Put it aside: agent-relay doctor --put-aside {session}"
        yield CheckResult("note", f"session {session} cannot go on: {why}", remedy)


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
            yield CheckResult(
                "note", f"{row['name']} is not installed", "Install it; until then it is skipped"
            )
        elif not row["signed_in"]:
            remedy = render_sign_in(str(row["name"]), str(row["sign_in"]))
            yield CheckResult("note", f"{row['name']} is not signed in", remedy)
    ready = [row for row in rows if row["program"] and row["signed_in"]]
    unable = yield from examine_versions(ready)
    able = [row for row in ready if row["name"] not in unable]
    if len(able) < 2:  # noqa: PLR2004 - a handoff takes two
        what = f"{render_count(len(able), 'agent')} can work here, a handoff takes two"
        remedy = "Install or sign in to another one; or see it work: agent-relay demo"
        yield CheckResult("problem", what, remedy)


LIMIT_S = 10.0
"""Longest wait for versions, in seconds: on an idle machine the four agents take 0.1 to 3, at first more."""
_GIT = "git"
_GIT_COST = "packets will not describe the working tree"
_NOT_RUNNABLE = (126, 127)
"""Exit statuses of a shell and of `env` for a program that cannot be run (POSIX, 2.8.2)."""
_SHOWN = 60


def examine_versions(
    rows: Sequence[Mapping[str, object]], *, limit_s: float = LIMIT_S
) -> Generator[CheckResult | PendingAnswers, None, frozenset[str]]:
    """Yield a finding on git and on each agent of `rows` that has a program; return those that cannot be run.

    `rows` are as `agents.build_view` returns them. All are asked at once, and the findings come in the order
    git, then `rows`; none comes later than `limit_s` seconds.
    """
    git = shutil.which(_GIT, path=keep_absolute(os.environ.get("PATH", os.defpath)))
    programs = {_GIT: git} if git else {}
    if not git:
        yield CheckResult("note", f"git is not installed: {_GIT_COST}", "Install git")
    newest = {str(row["name"]): str(row["tested_version"]) for row in rows}
    programs |= {str(row["name"]): str(row["program"]) for row in rows if str(row["name"]) != _GIT}
    commands = {name: (program, "--version") for name, program in programs.items()}
    answers: dict[str, ProgramAnswer] = {}
    due = list(programs)
    yield PendingAnswers(tuple(due), limit_s)
    with contextlib.closing(ask_programs(commands, limit_s=limit_s)) as asked:
        for name, answer in asked:
            answers[name] = answer
            yield PendingAnswers(tuple(other for other in programs if other not in answers), limit_s)
            while due and due[0] in answers:
                one = due.pop(0)
                yield _judge(one, programs[one], answers[one], limit_s)
                yield from _compare(one, programs[one], answers[one], newest.get(one, ""))
    # A program of the user's own may work without `--version`, or end with a status of its own.
    return frozenset(
        name
        for name, answer in answers.items()
        if answer.ending is Ending.NOT_STARTED or answer.status in _NOT_RUNNABLE or answer.status < -1
    )


def _compare(name: str, program: str, answer: ProgramAnswer, newest: str) -> Iterator[CheckResult]:
    """Store the program's answer; yield a finding if it is newer than every version that was tested."""
    if answer.ending is not Ending.ANSWERED or answer.status or not newest:
        return
    text = _find_version(answer)
    with contextlib.suppress(RelayError):
        note_answer(program, text, get_folders().agent_versions)
    version = find_number(text)
    if is_newer(version, newest):
        remedy = "Its limit messages may differ; look for a newer agent-relay"
        yield CheckResult("note", render_newer(name, version, newest), remedy)


def _judge(name: str, program: str, answer: ProgramAnswer, limit_s: float) -> CheckResult:
    """Return the finding that follows from the answer of `name`."""
    cost = f"; {_GIT_COST}" if name == _GIT else ""
    by_hand = shlex.join((program, "--version"))
    match answer.ending:
        case Ending.NOT_STARTED:
            what = f"{name} at {program} cannot be started: {answer.why}"
            return CheckResult("note", what + cost, f"Install {name} again")
        case Ending.LATE:
            late = f"{name} did not answer --version within {limit_s:g} s, so it may not work"
            return CheckResult("note", late + cost, f"It may only be slow. See how long it takes: {by_hand}")
        case Ending.LONG:
            what = f"{name} answers --version with more than {LIMIT_BYTES >> 10} KiB, which is not a version"
            return CheckResult("note", what + cost, f"See: {by_hand} | head")
        case Ending.ANSWERED if answer.status < 0:
            names = {one.value: one.name for one in signal.Signals}
            ending = names.get(-answer.status, f"signal {-answer.status}")
            what = f"{name} was ended by {ending} when it was asked for its version"
            return CheckResult("note", what + cost, f"Install {name} again")
        case Ending.ANSWERED if answer.status > 0:
            why = find_reason(answer.errors.decode("utf-8", "replace"))
            what = f"{name} --version ended with status {answer.status}{': ' if why else ''}{why}"
            return CheckResult("note", what + cost, f"Run it yourself: {by_hand}")
    return CheckResult("ok", f"{name} {_find_version(answer).removeprefix(f'{name} ')} at {program}")


def _find_version(answer: ProgramAnswer) -> str:
    """Return the first line of the answer that has text, of its output or else its errors."""
    lines = (answer.output + b"\n" + answer.errors).decode("utf-8", "replace").splitlines()
    return next((line.strip()[:_SHOWN] for line in lines if line.strip()), "of unknown version")
