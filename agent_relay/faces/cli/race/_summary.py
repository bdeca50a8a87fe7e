"""Render a race as tables and sentences: while it runs, and when it is decided."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.domain.text.counts import render_count
from agent_relay.faces.render.output import print_lines, print_table
from agent_relay.race.model import Race
from agent_relay.race.view import build_race_view

COLUMNS = ("runner", "state", "turns", "files", "lines", "test", "tokens", "cost", "time")
_UNKNOWN = "-"
_MINUTE_S = 60


def build_offline(race: Race) -> dict[str, object]:
    """Return the race's view without a daemon: inactive, as no work is known to be under way for it."""
    return {**build_race_view(race, datetime.now(UTC)), "active": False, "trouble": ""}


def list_runners(view: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the view's runners, the best first once they are ranked."""
    runners = view["runners"]
    assert isinstance(runners, list)  # noqa: S101 - built by logic.race.view
    return sorted(runners, key=lambda one: one["place"] or one["number"])


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
    overlaps = view["overlaps"]
    assert isinstance(overlaps, list)  # noqa: S101 - built by logic.race.view
    return [f"{one['first']} and {one['second']}: {one['path']}: {one['what']}" for one in overlaps]


def print_race(view: Mapping[str, object]) -> None:
    """Print the race: a table, the warnings, and the reasons once it is decided."""
    print_lines(f"Race {view['race']} ({view['state']}): {view['task']}")
    notes = view["notes"]
    assert isinstance(notes, list)  # noqa: S101 - built by logic.race.view
    print_lines(*(f"note: {note}" for note in notes))
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
