"""Show a race: its runners and result, and its progress until it is over."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.connection import Connection
from agent_relay.domain.errors import DaemonUnreachableError, WrongUseError
from agent_relay.domain.text.plain import render_count
from agent_relay.faces.render.output import (
    build_rich_table,
    get_contents,
    get_rows,
    is_fancy,
    plain,
    print_lines,
    print_table,
)
from agent_relay.race.model import Race, build_race_view
from agent_relay.system.disk.folders import Folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.console import Group


COLUMNS = ("runner", "state", "turns", "files", "lines", "test", "tokens", "cost", "time")
_UNKNOWN = "-"
_MINUTE_S = 60


def build_offline(race: Race) -> dict[str, object]:
    """Return the race's view without a daemon: inactive, as no work is known to be under way for it."""
    return {**build_race_view(race, datetime.now(UTC)), "active": False, "trouble": ""}


def list_runners(view: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the view's runners, the best first once they are ranked."""
    return sorted(get_rows(view, "runners"), key=lambda one: int(str(one["place"] or one["number"])))


def build_cells(runner: Mapping[str, object]) -> list[str]:
    """Return one runner as the cells of a row under `COLUMNS`."""
    added, removed = runner["added"], runner["removed"]
    lines = f"+{added} -{removed}" if added is not None else _UNKNOWN
    return [
        str(runner["runner"]),
        _render_state(runner),
        _show(runner["turns"]),
        _show(runner["files"]),
        lines,
        _render_test(runner),
        _show(runner["tokens"]),
        _show(runner["cost"]),
        render_time(runner["spent_s"]),
    ]


def list_warnings(view: Mapping[str, object]) -> list[str]:
    """Return a sentence for each place that two runners touch."""
    return [
        f"{one['first']} and {one['second']}: {one['path']}: {one['what']}"
        for one in get_rows(view, "overlaps")
    ]


def print_race(view: Mapping[str, object]) -> None:
    """Print the race: a table, the warnings, and the reasons once it is decided."""
    print_lines(f"Race {view['race']} ({view['state']}): {view['task']}")
    print_lines(*(f"note: {note}" for note in get_rows(view, "notes")))
    print_table(
        COLUMNS, [build_cells(runner) for runner in list_runners(view)], empty="The race has no runners."
    )
    print_lines(*(f"same place: {warning}" for warning in list_warnings(view)))
    if view["ranking"]:
        print_lines(*(f"{one['place']}. {one['runner']}: {one['reason']}" for one in list_runners(view)))
        print_lines(f"The winner is {view['winner']}." if view["winner"] else "The race has no winner.")
    if view["applied"]:
        print_lines(f"{view['applied']} is applied: {count_files(view['applied_files'])} in {view['root']}.")
    if view["failure"]:
        print_lines(f"Not applied: {view['failure']}.")


def print_next(view: Mapping[str, object]) -> None:
    """Print what can be done with the race now."""
    race = view["race"]
    trouble = view["trouble"] or view["why"]
    if view["active"]:
        return
    if view["resumable"]:
        print_lines(f"Stopped: {trouble}." if trouble else "It was interrupted.")
        print_lines(f"Go on: agent-relay race resume {race}")
    elif view["winner"] and not view["applied"]:
        print_lines(f"Look: agent-relay race diff {race}", f"Take it: agent-relay race apply {race}")
    print_lines(f"Remove what it made: agent-relay race clean {race}")


def render_time(seconds: object) -> str:
    """Return the time as `41 s`, or `3 m 05 s` from a minute on."""
    whole = int(seconds) if isinstance(seconds, int | float) else 0
    return f"{whole} s" if whole < _MINUTE_S else f"{whole // _MINUTE_S} m {whole % _MINUTE_S:02} s"


def count_files(files: object) -> str:
    """Return the count with its noun: `1 file`, `2 files`."""
    return render_count(int(str(files)), "file")


def list_changes(before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]) -> list[str]:
    """Return a line for every runner whose state, agent or test has changed."""
    known = {one["number"]: _render_line(one) for one in before}
    return [_render_line(one) for one in after if known.get(one["number"]) != _render_line(one)]


def _render_line(runner: Mapping[str, object]) -> str:
    test = f", test {runner['test']}" if runner["test"] in {"running", "passed", "failed"} else ""
    return f"{runner['runner']}: {_render_state(runner)}{test}"


def _render_state(runner: Mapping[str, object]) -> str:
    """Return what the runner is doing, or how it ended; and who works for it if that is another agent."""
    how = str(runner["how"])
    doing = runner.get("doing") or runner["state"]
    state = how.replace("-", " ") if how else str(doing if runner["state"] == "running" else runner["state"])
    at_work = runner.get("at_work")
    return f"{state} ({at_work})" if at_work and at_work != runner["agent"] else state


def _render_test(runner: Mapping[str, object]) -> str:
    status, test = runner["test_status"], str(runner["test"])
    return f"{test} ({status})" if test == "failed" and status != -1 else test


def _show(value: object) -> str:
    return _UNKNOWN if value is None else str(value)


_Show = Callable[[Mapping[str, object]], None]
_EVERY_S = 0.5
_REVIVALS = 5
"""Number of times a daemon that dies is replaced; after that the next one would die as well."""
_SHOWN_WARNINGS = 5


def follow(folders: Folders, connection: Connection, race: str, *, quiet: bool) -> dict[str, object]:
    """Show the race until no work is under way for it; return its last view.

    A daemon that dies is replaced, and the race resumed. Raises DaemonUnreachableError if that does not
    help, and what the caller's `SignalTrap` raises for Ctrl-C.
    """
    revivals = 0
    with _open_board(quiet=quiet) as show, contextlib.ExitStack() as opened:
        while True:
            try:
                if revivals:
                    # It may be over by now, which its view will say.
                    with contextlib.suppress(WrongUseError):
                        connection.request("race.resume", race=race, env=dict(os.environ))
                return _follow(connection, race, show)
            except DaemonUnreachableError:
                if revivals == _REVIVALS:
                    raise
                revivals += 1
                opened.close()
                connection = opened.enter_context(connect_or_start(folders))


def _follow(connection: Connection, race: str, show: _Show) -> dict[str, object]:
    connection.subscribe()
    while True:
        view = get_contents(connection.request("race.show", race=race))
        show(view)
        if not view["active"]:
            return view
        # Sessions tell of every change: looking twice a second is as much as anybody can read.
        time.sleep(_EVERY_S)
        connection.take_notices()


@contextmanager
def _open_board(*, quiet: bool) -> Iterator[_Show]:
    """Yield what shows a race while it runs."""
    if quiet:
        yield lambda _: None
    elif not is_fancy():
        yield _Lines().show
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(highlight=False), auto_refresh=False, transient=True) as live:
            yield lambda view: live.update(_build_table(view), refresh=True)


class _Lines:
    """Prints one line for each change, so that a log can be read afterwards."""

    def __init__(self) -> None:
        self._runners: list[dict[str, object]] = []
        self._said: set[str] = set()

    def show(self, view: Mapping[str, object]) -> None:
        self._say_once(f"Race {view['race']}: {view['task']}")
        for note in get_rows(view, "notes"):
            self._say_once(f"note: {note}")
        runners = list_runners(view)
        print_lines(*list_changes(self._runners, runners))
        self._runners = runners
        for warning in list_warnings(view):
            self._say_once(f"same place: {warning}")

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            print_lines(line)


def _build_table(view: Mapping[str, object]) -> "Group":
    """Return the runners as a table, and the newest warnings."""
    from rich.console import Group
    from rich.text import Text

    warnings = list_warnings(view)
    more = [f"and {len(warnings) - _SHOWN_WARNINGS} more"] if len(warnings) > _SHOWN_WARNINGS else []
    notes = [f"same place: {plain(warning)}" for warning in warnings[-_SHOWN_WARNINGS:]] + more
    head = Text(plain(f"Race {view['race']}: {view['task']}"), style="bold")
    table = build_rich_table(COLUMNS, [build_cells(runner) for runner in list_runners(view)])
    return Group(head, table, *(Text(line, style="yellow") for line in notes))
