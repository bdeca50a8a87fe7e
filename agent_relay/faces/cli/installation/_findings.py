"""Show the findings of `agent-relay doctor` as they come; ask git and the agents for their versions."""

import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from agent_relay.agents.agent_versions import note_answer
from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import find_number, is_newer
from agent_relay.domain.text.plain import find_reason
from agent_relay.faces.render.output import is_fancy, plain, print_lines
from agent_relay.session.views.messages import render_newer
from agent_relay.system.disk.folders import get_folders
from agent_relay.system.programs import LIMIT_BYTES, Ending, ProgramAnswer, ask_programs
from agent_relay.system.spawn import keep_absolute

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One finding: `ok`, a `note` that costs something, or a `problem` that must be solved; with a remedy."""

    level: Literal["ok", "note", "problem"]
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """Names of those asked who have not answered yet, for at most `limit_s` seconds; empty once all have."""

    names: tuple[str, ...]
    limit_s: float


class DoctorReport(Protocol):
    """Shows the findings of `agent-relay doctor`."""

    def show(self, finding: CheckResult | PendingAnswers) -> None:
        """Show the finding at once."""


@contextlib.contextmanager
def open_report(*, quiet: bool) -> Iterator[DoctorReport]:
    """Yield the report that fits standard output; with `quiet`, one that shows nothing."""
    if quiet:
        yield _Silence()
    elif not is_fancy():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        # What is written beside the columns is ours alone, so nothing needs to be caught.
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(highlight=False),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            yield _Live(progress)


class _Silence:
    def show(self, finding: CheckResult | PendingAnswers) -> None:
        pass


class _Lines:
    """Prints a line per finding at once; on a terminal without colours also who is being asked."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def show(self, finding: CheckResult | PendingAnswers) -> None:
        if isinstance(finding, CheckResult):
            print_lines(_render(finding))
        elif sys.stdout.isatty() and not self._shown.issuperset(finding.names):
            self._shown |= {*finding.names}
            print_lines(f"Asking {', '.join(finding.names)}: at most {finding.limit_s:g} s")
        sys.stdout.flush()


class _Live:
    """Shows findings in colour above a line that moves until everybody asked has answered."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def show(self, finding: CheckResult | PendingAnswers) -> None:
        from rich.text import Text

        if isinstance(finding, CheckResult):
            line = Text(_render(finding))
            line.stylize(_COLOURS[finding.level], 0, len(finding.level))
            self._progress.console.print(line, soft_wrap=True)
            return
        if self._task is not None and not finding.names:
            self._progress.remove_task(self._task)
            self._task = None
        elif finding.names:
            text = plain(f"asking {', '.join(finding.names)}: at most {finding.limit_s:g} s")
            if self._task is None:
                self._task = self._progress.add_task(text)
            self._progress.update(self._task, description=text)


def _render(finding: CheckResult) -> str:
    remedy = f" - {finding.remedy}" if finding.remedy else ""
    return plain(f"{finding.level:8}{finding.what}{remedy}")


LIMIT_S = 10.0
"""The four agents take 0.1 to 3 s on a machine with nothing else to do, a first start of theirs longer."""
_GIT = "git"
_GIT_COST = "packets will not describe the working tree"
_NOT_RUNNABLE = (126, 127)
"""What a shell's and `env`'s exit status says of a program that cannot be run (POSIX, 2.8.2)."""
_SHOWN = 60
_UNTRIED = "Its limit messages may differ; look for a newer agent-relay"


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
    return frozenset(name for name, answer in answers.items() if _is_unable(answer))


def _is_unable(answer: ProgramAnswer) -> bool:
    """Check whether the program cannot be run; one of the user's own may work without `--version`."""
    return answer.ending is Ending.NOT_STARTED or answer.status in _NOT_RUNNABLE or answer.status < -1


def _compare(name: str, program: str, answer: ProgramAnswer, newest: str) -> Iterator[CheckResult]:
    """Store the program's answer; yield a finding if it is newer than every version that was tested."""
    if answer.ending is not Ending.ANSWERED or answer.status or not newest:
        return
    text = _find_version(answer)
    with contextlib.suppress(RelayError):
        note_answer(program, text, get_folders().agent_versions)
    version = find_number(text)
    if is_newer(version, newest):
        yield CheckResult("note", render_newer(name, version, newest), _UNTRIED)


def _judge(name: str, program: str, answer: ProgramAnswer, limit_s: float) -> CheckResult:
    """Return the finding that follows from the answer of `name`."""
    cost = f"; {_GIT_COST}" if name == _GIT else ""
    by_hand = shlex.join((program, "--version"))
    match answer.ending:
        case Ending.NOT_STARTED:
            return CheckResult(
                "note", f"{name} at {program} cannot be started: {answer.why}{cost}", f"Install {name} again"
            )
        case Ending.LATE:
            late = f"{name} did not answer --version within {limit_s:g} s, so it may not work"
            return CheckResult("note", late + cost, f"It may only be slow. See how long it takes: {by_hand}")
        case Ending.LONG:
            most = f"more than {LIMIT_BYTES >> 10} KiB, which is not a version"
            return CheckResult(
                "note", f"{name} answers --version with {most}{cost}", f"See: {by_hand} | head"
            )
        case Ending.ANSWERED if answer.status < 0:
            number = -answer.status
            signal_name = next((one.name for one in signal.Signals if one == number), f"signal {number}")
            return CheckResult(
                "note",
                f"{name} was ended by {signal_name} when it was asked for its version{cost}",
                f"Install {name} again",
            )
        case Ending.ANSWERED if answer.status > 0:
            why = find_reason(answer.errors.decode("utf-8", "replace"))
            what = f"{name} --version ended with status {answer.status}{': ' if why else ''}{why}"
            return CheckResult("note", what + cost, f"Run it yourself: {by_hand}")
    version = _find_version(answer).removeprefix(f"{name} ")
    return CheckResult("ok", f"{name} {version} at {program}")


def _find_version(answer: ProgramAnswer) -> str:
    """Return the first line of the answer that has text, of its output or else its errors."""
    for output in (answer.output, answer.errors):
        for line in output.decode("utf-8", "replace").splitlines():
            if line.strip():
                return line.strip()[:_SHOWN]
    return "of unknown version"
