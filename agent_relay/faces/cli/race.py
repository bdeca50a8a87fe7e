"""`agent-relay race`: several agents at one task, each in its own worktree; the test decides."""

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from agent_relay.client.autostart import ask_daemon, connect_or_start
from agent_relay.client.connection import Connection
from agent_relay.client.turn_follower import Interrupted, SignalTrap
from agent_relay.domain.errors import DaemonUnreachableError, ExitCode, RelayError, WrongUseError
from agent_relay.faces.cli._race_view import build_offline, count_files, follow, print_next, print_race
from agent_relay.faces.cli.typer_runner import AsJson, Functions
from agent_relay.faces.render.output import (
    get_contents,
    get_rows,
    plain,
    print_either,
    print_json,
    print_lines,
    print_table,
    render_moment,
)
from agent_relay.race.journal import find_race, list_races, read_race
from agent_relay.race.model import Race
from agent_relay.store.session_index import find_near_root
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.system.git.snapshot import open_store, read_patch

Named = Annotated[
    str, typer.Argument(help="A race's id, or its beginning or end; by default the newest here.")
]
Runner = Annotated[str, typer.Option("--runner", help="A runner's number or name; by default the winner.")]
_LIMIT_S = 600.0
"""Longest wait to apply or remove, in seconds: git and the disk may have much to do."""
_ASK_S = 5.0


def race(
    words: Annotated[list[str], typer.Argument(help="Two agents or more, then the task.")],
    *,
    test: Annotated[
        str, typer.Option("--test", help="A command; an agent that passes it (exit status 0) can win.")
    ] = "",
    max_time: Annotated[int, typer.Option("--max-time", help="Seconds a runner may take.", min=0)] = 0,
    test_time: Annotated[int, typer.Option("--test-time", help="Seconds a test may take.", min=1)] = 600,
    apply: Annotated[bool, typer.Option("--apply", help="Put the winner's changes into this tree.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON, nothing before it.")] = False,
) -> int:
    """Let several agents do one task at once, each in a worktree with all that is here, committed or not.

    The winner passes the test with the smallest diff, then in the shortest time. Ctrl-C stops the race;
    `agent-relay race resume` goes on with it. What was made stays until `agent-relay race clean`.
    """
    *agents, task = words
    if len(agents) < 2:  # noqa: PLR2004 - a race of one is a run
        raise WrongUseError(
            "a race takes two agents or more, then a task", hint="See: agent-relay race --help"
        )
    folders = get_folders()
    with connect_or_start(folders) as connection, SignalTrap() as signals:
        try:
            answer = connection.request(
                "race.begin",
                limit_s=_LIMIT_S,
                agents=agents,
                task=task,
                cwd=get_cwd(),
                env=dict(os.environ),
                test=test,
                max_time_s=max_time,
                test_limit_s=test_time,
                apply=apply,
            )
        except DaemonUnreachableError as error:
            # Tried again, it might be the second race at the same task.
            hint = "It may have begun: agent-relay race list. Go on with it: agent-relay race resume"
            raise DaemonUnreachableError(error.sentence, hint=hint) from error
        return _follow(connection, str(answer["race"]), signals, as_json=as_json)


def show(name: Named = "", *, as_json: AsJson = False) -> None:
    """Show a race's runners, what they touched in the same place, who won and why."""
    _print(_get_view(_find(name)[1]), as_json=as_json)


def show_all(*, as_json: AsJson = False) -> None:
    """All races that have not been removed, of every repository."""
    found: list[dict[str, object]] = []
    folders = get_folders()
    for race_id in list_races(folders):
        folder = os.path.join(folders.races, race_id)
        try:
            known = read_race(folder)
        except RelayError as error:
            found.append({"race": race_id, "state": "unreadable", "why": error.sentence, "root": ""})
            continue
        if known is not None:
            found.append(build_offline(known))
    if as_json:
        print_json({"races": found})
        return
    rows = [
        [
            str(view["state"]),
            str(view.get("winner") or "-"),
            render_moment(view.get("began_at")),
            str(view["race"]),
            str(view.get("task") or view["why"]),
            str(view["root"]),
        ]
        for view in found
    ]
    print_table(("state", "winner", "began", "race", "task", "where"), rows, empty="There are no races.")


def diff(
    name: Named = "",
    *,
    runner: Runner = "",
    stat: Annotated[bool, typer.Option("--stat", help="Only how much changed where.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {race, runner, diff}.")] = False,
) -> None:
    """Print what a runner changed since the race began, as git's own diff."""
    folder, known = _find(name)
    chosen = known.get_runner(_choose(known, runner) or _get_winner(known))
    if not chosen.result:
        raise WrongUseError(f"{chosen.name} has not come to an end yet", hint=f"Look into {chosen.tree}")
    store = open_store(os.path.join(folder, "objects"), known.root)
    words = ("--stat",) if stat else ("--binary", "--full-index")
    patch = read_patch(known.root, store, known.base, chosen.result, words)
    if as_json:
        text = patch.decode("utf-8", "backslashreplace")
        print_json({"race": known.id, "runner": chosen.name, "diff": text})
    elif sys.stdout.isatty():
        print_lines(*patch.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"))
    else:
        sys.stdout.buffer.write(patch)


def apply(name: Named = "", *, runner: Runner = "", as_json: AsJson = False) -> int:
    """Put a runner's changes into the tree the race began in; where they do not fit, nothing changes."""
    _, known = _find(name)
    answer = _request("race.apply", race=known.id, runner=_choose(known, runner))
    if answer["why"] and not as_json:
        raise RelayError(
            f"cannot apply {answer['runner']}: {answer['why']}",
            hint=f"Nothing was changed. See: agent-relay race diff {known.id}",
        )
    print_either(answer, _render_applied(answer, known.root), as_json=as_json)
    return ExitCode.FAILED if answer["why"] else ExitCode.DONE


def _render_applied(answer: Mapping[str, object], root: str) -> str:
    """Return a sentence that says what was applied."""
    if answer["files"]:
        return f"{count_files(answer['files'])} of {answer['runner']}: applied in {root}."
    if answer.get("already"):
        return f"{answer['runner']} is applied already: all its changes are in {root}."
    return f"{answer['runner']} changed nothing, so there was nothing to apply."


def clean(
    name: Named = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="All races of this repository.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {races: [{race, notes}]}.")] = False,
) -> None:
    """Remove a race: its worktrees, branches, results and journal. What was applied stays."""
    names = [name]
    if everything:
        root, folders = find_near_root(get_cwd()), get_folders()
        known = [read_race(os.path.join(folders.races, race_id)) for race_id in list_races(folders)]
        names = [one.id for one in known if one is not None and one.root == root]
    gone: list[dict[str, object]] = []
    for one in names:
        _, found = _find(one)
        notes = [str(note) for note in get_rows(_request("race.clean", race=found.id), "said")]
        gone.append({"race": found.id, "notes": notes})
        if not as_json:
            print_lines(f"Race {found.id} is gone.", *notes)
    if as_json:
        print_json({"races": gone})


def stop(
    name: Named = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: {race, state}.")] = False,
) -> None:
    """End a race's runners; it can be resumed."""
    _, known = _find(name)
    _request("race.stop", race=known.id)
    told = f"Race {known.id} has stopped. Go on: agent-relay race resume {known.id}"
    print_either({"race": known.id, "state": "stopped"}, told, as_json=as_json)


def resume(name: Named = "", *, as_json: AsJson = False) -> int:
    """Go on with a race that was stopped or interrupted, or watch one that is under way."""
    _, known = _find(name)
    with connect_or_start(get_folders()) as connection, SignalTrap() as signals:
        connection.request("race.resume", limit_s=_LIMIT_S, race=known.id, env=dict(os.environ))
        return _follow(connection, known.id, signals, as_json=as_json)


def _follow(connection: Connection, race_id: str, signals: SignalTrap, *, as_json: bool) -> int:
    """Follow the race until it is over or a Unix signal stops it; return the exit status."""
    folders = get_folders()
    try:
        signals.check()
        with signals.breaking():
            view = follow(folders, connection, race_id, quiet=as_json)
    except (Interrupted, OSError):
        # A terminal that is closed sends a signal, and can be written to no more.
        _say("Stopping the runners …")
        with contextlib.suppress(WrongUseError):
            _request("race.stop", race=race_id)
        _say(f"Stopped. Go on: agent-relay race resume {race_id}")
        if not signals.number:
            raise
        return 128 + signals.number
    _print(view, as_json=as_json)
    if view["winner"] and not view["failure"]:
        return ExitCode.DONE
    limited = all(one["how"] == "limited" for one in get_rows(view, "runners"))
    return ExitCode.NOBODY_AVAILABLE if limited else ExitCode.FAILED


def _print(view: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(view)
    else:
        print_race(view)
        print_next(view)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()


def _find(name: str) -> tuple[str, Race]:
    return find_race(get_folders(), name, root=find_near_root(get_cwd()))


def _choose(known: Race, runner: str) -> int:
    """Return the runner's number, 0 if none is named; raise WrongUseError unless one runner has the name."""
    if not runner:
        return 0
    found = [one.number for one in known.runners if runner in {str(one.number), one.name, one.agent}]
    if len(found) != 1:
        names = ", ".join(one.name for one in known.runners)
        raise WrongUseError(f"the race has no runner {plain(runner[:40])!r}", hint=f"There are: {names}")
    return found[0]


def _get_winner(known: Race) -> int:
    if known.verdict is None or not known.verdict.winner:
        raise WrongUseError("this race has no winner", hint="Name a runner: --runner N")
    return known.verdict.winner


def _get_view(known: Race) -> dict[str, object]:
    """Return the daemon's view of the race, or the journal's if no daemon answers."""
    try:
        with Connection.open(get_folders(), limit_s=_ASK_S) as connection:
            answer = connection.request("race.show", race=known.id)
        return get_contents(answer)
    except DaemonUnreachableError:
        return build_offline(known)


def _request(operation: str, **fields: object) -> dict[str, object]:
    return get_contents(ask_daemon(get_folders(), operation, limit_s=_LIMIT_S, **fields))


def schema(*, as_json: AsJson = False) -> None:  # noqa: ARG001 - the schema is JSON in any case
    """Print the JSON Schema of what --json prints of a race."""
    from agent_relay.race.schema import build_race_schema

    print_json(build_race_schema())


RACE: Functions = {
    "": race,
    "schema": schema,
    "show": show,
    "list": show_all,
    "diff": diff,
    "apply": apply,
    "stop": stop,
    "resume": resume,
    "clean": clean,
}
"""The functions by sub-command."""
