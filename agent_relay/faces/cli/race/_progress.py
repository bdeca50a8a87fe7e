"""Follow a race until it is over: a live table on a terminal, elsewhere a line per change."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.connection import Connection
from agent_relay.domain.errors import DaemonUnreachableError, WrongUseError
from agent_relay.faces.cli.race._summary import (
    COLUMNS,
    build_cells,
    list_changes,
    list_runners,
    list_warnings,
)
from agent_relay.faces.render.output import get_contents, is_fancy, plain, print_lines
from agent_relay.system.disk.folders import Folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.live import Live

_EVERY_S = 0.5
_REVIVALS = 5
"""How often a daemon that dies is replaced before that is taken for its nature."""
_SHOWN_WARNINGS = 5


class RaceBoard(Protocol):
    """Shows a race while it runs."""

    def show(self, view: Mapping[str, object]) -> None:
        """Show the race as it is now."""
        ...


def follow(folders: Folders, connection: Connection, race: str, *, quiet: bool) -> dict[str, object]:
    """Show the race until no work is under way for it; return its last view.

    A daemon that dies is replaced, and the race resumed. Raises DaemonUnreachableError if that does not
    help, and what the caller's `SignalTrap` raises for Ctrl-C.
    """
    revivals = 0
    with _open_board(quiet=quiet) as board:
        while True:
            try:
                return _follow(connection, race, board)
            except DaemonUnreachableError:
                if revivals == _REVIVALS:
                    raise
                revivals += 1
                connection = connect_or_start(folders)
                # It may be over by now, which its view will say.
                with contextlib.suppress(WrongUseError):
                    connection.request("race.resume", race=race, env=dict(os.environ))


def _follow(connection: Connection, race: str, board: RaceBoard) -> dict[str, object]:
    connection.subscribe()
    while True:
        answer = connection.request("race.show", race=race)
        view = get_contents(answer)
        board.show(view)
        if not view["active"]:
            return view
        # Sessions tell of every change: looking twice a second is as much as anybody can read.
        time.sleep(_EVERY_S)
        connection.take_notices()


@contextmanager
def _open_board(*, quiet: bool) -> Iterator[RaceBoard]:
    if quiet:
        yield _Silence()
    elif not is_fancy():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(highlight=False), auto_refresh=False, transient=True) as live:
            yield _Table(live)


class _Silence:
    def show(self, view: Mapping[str, object]) -> None:
        pass


class _Lines:
    """Prints one line for each change, so that a log can be read afterwards."""

    def __init__(self) -> None:
        self._runners: list[dict[str, object]] = []
        self._warned: set[str] = set()
        self._said = False

    def show(self, view: Mapping[str, object]) -> None:
        if not self._said:
            print_lines(f"Race {view['race']}: {view['task']}")
            self._said = True
        runners = list_runners(view)
        notes = view["notes"]
        for note in notes if isinstance(notes, list) else ():
            if note not in self._warned:
                self._warned.add(note)
                print_lines(f"note: {note}")
        print_lines(*list_changes(self._runners, runners))
        self._runners = runners
        for warning in list_warnings(view):
            if warning not in self._warned:
                self._warned.add(warning)
                print_lines(f"same place: {warning}")


class _Table:
    """Shows a table of the runners, redrawn in place."""

    def __init__(self, live: "Live") -> None:
        self._live = live

    def show(self, view: Mapping[str, object]) -> None:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="dim", pad_edge=False)
        for column in COLUMNS:
            table.add_column(column, overflow="fold")
        for runner in list_runners(view):
            table.add_row(*(Text(plain(cell)) for cell in build_cells(runner)))
        warnings = list_warnings(view)
        more = [f"and {len(warnings) - _SHOWN_WARNINGS} more"] if len(warnings) > _SHOWN_WARNINGS else []
        notes = [f"same place: {plain(warning)}" for warning in warnings[-_SHOWN_WARNINGS:]] + more
        head = Text(plain(f"Race {view['race']}: {view['task']}"), style="bold")
        self._live.update(Group(head, table, *(Text(line, style="yellow") for line in notes)), refresh=True)
