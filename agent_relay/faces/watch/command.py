"""`agent-relay watch`: watch sessions live, on a terminal, as a stream of events, or in a browser."""

import errno
import json
import os
import select
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from agent_relay.domain.errors import ExitCode
from agent_relay.domain.protocol.watch_events import build_watch_schema
from agent_relay.faces.cli.dispatch import OUTPUT, missing_extra, report_output
from agent_relay.faces.cli.options import UsageError
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.render.output import print_json
from agent_relay.faces.watch._watch_loop import WatchLoop
from agent_relay.faces.watch.lines import LineLog, is_fancy_terminal, print_view
from agent_relay.faces.watch.view import View, list_changes
from agent_relay.faces.watch.watcher import WatchedSessions, Watcher
from agent_relay.store.session_index import find_near_root
from agent_relay.system.clock import LocalZone
from agent_relay.system.disk.folders import get_cwd, get_folders


def watch(
    session: Annotated[str, typer.Argument(help="Only this one: the beginning or end of its id.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Your sessions in all repositories.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Keep watching, or print the current state and exit.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one event per line; see docs/watch.md.")
    ] = False,
    web: Annotated[bool, typer.Option("--web", help="Serve a page on this machine, for a browser.")] = False,
    port: Annotated[int, typer.Option("--port", help="The port of the page; by default any free one.")] = 0,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of an event.")] = False,
) -> int:
    """Sessions as they go: state, screen, turn, tokens, limits, context, plan, and what happened.

    Those of this repository, or one. Nothing is changed by watching: it starts no daemon, and goes on from
    files while there is none. On a terminal: arrow keys choose a session, q ends.
    """
    if schema:
        print_json(build_watch_schema())
        return 0
    _check_options(
        ("SESSION and --all cannot be used together", bool(session) and everything),
        ("--web and --json cannot be used together", web and as_json),
        ("--web and --no-follow cannot be used together", web and not follow),
        ("--port needs --web", bool(port) and not web),
    )
    zone = LocalZone()
    watched = _choose(session, is_all=everything)
    watcher = Watcher(get_folders(), watched, zone=zone)
    loop = WatchLoop(get_folders(), watcher, watched, environ=os.environ)
    if not follow:
        view = _look_once(watcher, loop)
        _print_changes(None, view) if as_json else print_view(view, zone)
        return ExitCode.DONE
    if web:
        return _serve(loop, port)
    if not as_json and is_fancy_terminal():
        from agent_relay.faces.watch._full_screen import show

        return show(loop, zone)
    return _print_on(loop, _print_changes if as_json else LineLog(zone).show)


def _print_on(loop: WatchLoop, show: Callable[[View | None, View], None]) -> int:
    """Print views until nobody reads any more or nothing can be written; return the exit status then."""
    try:
        _stream(loop, show)
    except OSError as error:
        # Before typer makes a plain 1 of it.
        if error.errno in OUTPUT:
            return report_output(error)
        raise


def _check_options(*wrong: tuple[str, bool]) -> None:
    """Raise UsageError with the first sentence that applies."""
    for sentence, is_given in wrong:
        if is_given:
            raise UsageError(sentence, command="watch")


def _choose(session: str, *, is_all: bool) -> WatchedSessions:
    if is_all:
        return WatchedSessions()
    root = find_near_root(get_cwd())
    if not session:
        return WatchedSessions(root)
    found = find_session(get_folders(), session)
    return WatchedSessions(str(found["root"]), str(found["session"]))


def _serve(loop: WatchLoop, port: int) -> int:
    """Serve the page; raise ConfigurationError if the libraries of the page are not installed."""
    try:
        from agent_relay.faces.watch._web import serve
    except ModuleNotFoundError as error:
        raise missing_extra(error, "web") from error
    return serve(loop, port)


def _look_once(watcher: Watcher, loop: WatchLoop) -> View:
    if watcher.connect():
        watcher.ask(is_patient=False)
    watcher.read()
    loop.read_figures()
    return watcher.read()


def _stream(loop: WatchLoop, show: Callable[[View | None, View], None]) -> NoReturn:
    """Show views and never return: a Unix signal ends it, or its reader's end, which is noticed at once."""
    latest = loop.start()
    poll = select.poll()
    poll.register(latest, select.POLLIN)
    poll.register(sys.stdout, 0)
    before: View | None = None
    while True:
        if any(number != latest.fileno() for number, _ in poll.poll()):
            raise BrokenPipeError(errno.EPIPE, "the reader has gone")
        view = latest.take()
        if view is not None:
            show(before, view)
            before = view


def _print_changes(before: View | None, after: View) -> None:
    for event in list_changes(before, after):
        sys.stdout.write(json.dumps(event.model_dump(mode="json")) + "\n")
    sys.stdout.flush()
