"""Show the results of `agent-relay doctor` as they come; on a terminal also what it waits for."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from agent_relay.faces.render.output import is_fancy, plain, print_lines

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
