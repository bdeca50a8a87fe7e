"""`agent-relay metrics` as a user asks it: figures from files, with no daemon and no network."""

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from agent_relay.faces.render.output import render_tables
from agent_relay.store.session_index import write_entry
from tests.faces.cli_run import World, create_world
from tests.house import tree

pytestmark = pytest.mark.size("test")

LEG = "5887e6e9-1471-4088-9b9f-b196afa79f67"
PRICED = "claude-opus-4-8"
BEGUN = {"type": "session", "at": "2026-11-21T05:00:00Z", "id": "one", "cwd": "/w"}
TURN: list[dict[str, object]] = [
    {"type": "prompt", "at": "2026-11-21T05:00:00Z"},
    {"type": "usage", "at": "2026-11-21T05:00:01Z", "input": 10, "output": 5},
]
FAILED: list[dict[str, object]] = [
    {"type": "prompt", "at": "2026-11-21T06:00:00Z"},
    {"type": "limit", "at": "2026-11-21T06:00:02Z"},
]


def _write(path: str, *rows: dict[str, object]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def _prompt(at: str, session: str, cwd: str) -> dict[str, object]:
    message = {"role": "user", "content": "go"}
    return {
        "type": "user",
        "uuid": f"p{at}",
        "sessionId": session,
        "timestamp": at,
        "cwd": cwd,
        "message": message,
    }


def _answer(key: str, at: str, session: str, cwd: str, *, model: str = PRICED) -> dict[str, object]:
    usage = {"input_tokens": 1_000_000, "output_tokens": 100_000, "cache_read_input_tokens": 2_000_000}
    message = {"id": key, "model": model, "usage": usage}
    row = {"sessionId": session, "message": message, "type": "assistant", "timestamp": at, "cwd": cwd}
    return row | {"uuid": key}


@pytest.fixture
def world(world: World) -> World:
    """A repository with a session of relay's, a user's own session in it, and one elsewhere."""
    shutil.copytree(tree.FIRST_FOLDER, f"{world.cwd}/.agent-relay", symlinks=True)
    session = "01M7Y8XZEX7SAVV4H1XBVMVZT6"
    write_entry(f"{world.home}/state/sessions", session, root=world.cwd, cwd=world.cwd)
    place = f"{world.home}/.claude/projects"
    _write(
        f"{place}/here/own-1.jsonl",
        _prompt("2026-11-20T10:00:00Z", "own-1", world.cwd),
        _answer("m1", "2026-11-20T10:00:30Z", "own-1", world.cwd),
    )
    _write(
        f"{place}/there/own-2.jsonl",
        _prompt("2026-11-21T10:00:00Z", "own-2", "/elsewhere"),
        _answer("m2", "2026-11-21T10:00:30Z", "own-2", "/elsewhere", model="nobody-lists-this"),
    )
    return world


def _ask(world: World, *words: str) -> dict[str, object]:
    done = world.run("metrics", *words, "--json")
    assert (done.status, done.err) == (0, "")
    found: dict[str, object] = json.loads(done.out)
    return found


def _rows(view: dict[str, object]) -> dict[str, dict[str, object]]:
    rows = view["rows"]
    assert isinstance(rows, list)
    return {row["key"]: row for row in rows}


def test_this_repositorys_sessions_are_the_default(world: World) -> None:
    """Relay's own, and those agents keep themselves here; 1 M at $5, 2 M at $0.50 and 0.1 M at $25: $8.50."""
    rows = _rows(_ask(world))
    assert set(rows) == {"claude:own-1", "01M7Y8XZEX7SAVV4H1XBVMVZT6"}
    own = rows["claude:own-1"]
    assert (own["input_tokens"], own["cached_tokens"], own["output_tokens"]) == (
        1_000_000,
        2_000_000,
        100_000,
    )
    assert (own["cost_usd"], own["cost_is_whole"], own["turns"], own["active_s"]) == ("8.5", True, 1, 30.0)


def test_a_session_of_relays_is_told_with_its_handoff_and_what_is_not_known(world: World) -> None:
    """Its limit at 14.29 s, its successor at work at 15.47 s; its agents' transcripts are gone."""
    row = _rows(_ask(world, "VZT6"))["01M7Y8XZEX7SAVV4H1XBVMVZT6"]
    assert (row["handoffs"], row["limits"], row["failovers"], row["failover_mean_s"]) == (1, 1, 1, 1.176)
    assert (row["legs_without_transcript"], row["total_tokens"], row["cost_usd"]) == (2, None, None)
    assert row["agents"] == ["demo", "understudy"]


def test_a_leg_is_charged_with_what_happened_during_it(world: World) -> None:
    """Before the leg the user worked there alone: 10 tokens are theirs, 5 + 7 the leg's, in a failed turn."""
    rows: list[dict[str, object]] = [
        {"type": "session", "at": "2026-11-21T05:00:00Z", "id": LEG, "cwd": world.cwd},
        {"type": "prompt", "at": "2026-11-21T05:00:00Z"},
        {"type": "usage", "at": "2026-11-21T05:00:01Z", "input": 10, "output": 0},
        {"type": "prompt", "at": "2026-11-21T05:23:12.3Z"},
        {"type": "usage", "at": "2026-11-21T05:23:13Z", "input": 5, "output": 7},
    ]
    _write(f"{world.home}/.demo-agent/demo/{LEG}.jsonl", *rows)
    session = _rows(_ask(world, "01M7Y8XZEX7SAVV4H1XBVMVZT6"))["01M7Y8XZEX7SAVV4H1XBVMVZT6"]
    assert (session["total_tokens"], session["turns"], session["failed_turns"]) == (12, 1, 1)
    chain = _rows(_ask(world, "01M7Y8XZEX7SAVV4H1XBVMVZT6", "--chain"))
    assert {key: row["total_tokens"] for key, row in chain.items()} == {
        "01M7Y8XZEX7SAVV4H1XBVMVZT6": 12, f"demo:{LEG}": 10,
    }  # fmt: skip
    assert _rows(_ask(world, "--chain")) == chain


def test_all_are_those_of_every_agent_on_the_machine(world: World) -> None:
    """An unknown price is unknown: the total says that a part is missing."""
    view = _ask(world, "--all", "--by", "model")
    assert {key: row["cost_usd"] for key, row in _rows(view).items()} == {
        PRICED: "8.5",
        "nobody-lists-this": None,
    }
    total = view["total"]
    assert isinstance(total, dict)
    assert (total["cost_usd"], total["cost_is_whole"]) == ("8.5", False)
    assert total["unpriced_tokens"] == {"nobody-lists-this": 3_100_000}
    text = world.run("metrics", "--all", "--by", "model").out
    assert ">$8.50" in text
    assert "unknown" in text
    assert "No price is known for the tokens of: nobody-lists-this (3,100,000)." in text


def test_rows_by_day_since_and_agent_choose(world: World) -> None:
    """A date means that day's beginning here; the day is the user's."""
    assert set(_rows(_ask(world, "--all", "--by", "day"))) == {"2026-11-20", "2026-11-21"}
    late = _rows(_ask(world, "--all", "--by", "agent", "--since", "2026-11-21"))
    assert {key: row["total_tokens"] for key, row in late.items() if key == "claude"} == {"claude": 3_100_000}
    assert set(_rows(_ask(world, "--all", "--by", "agent", "--agent", "claude"))) == {"claude"}
    assert set(_rows(_ask(world, "--by", "leg"))) == {
        "claude:own-1", "01M7Y8XZFDA2TM4CJWSD68KYBM", "01M7Y8Y2BYPWZJ9T89B8AXHSDB",
    }  # fmt: skip
    assert _rows(_ask(world, "--since", "0h")) == {}
    assert "No usage was found here." in world.run("metrics", "--since", "0h").out


def test_days_are_drawn_as_bars_also_where_only_ascii_can_be_written(world: World) -> None:
    """A pipe of another alphabet must not fail, and a price nobody knows is no zero."""
    bars = world.run("metrics", "--all", "--by", "day").out.split("\n\n")[-2]
    assert bars.splitlines()[1:] == [
        "2026-11-20  3,100,000  ███████████████████████    $8.50  ███████████████████████",
        "2026-11-21  3,100,000  ███████████████████████  unknown",
    ]
    plain = {"PYTHONIOENCODING": "ascii"}
    drawn = world.run_with(plain, "metrics", "--all", "--by", "day")
    assert (drawn.status, drawn.err) == (0, "")
    assert "2026-11-21  3,100,000  #######################  unknown\n" in drawn.out


def test_an_agent_nobody_knows_is_a_mistake_and_one_that_did_nothing_is_not(world: World) -> None:
    """Of a misspelt name it would be believed; journals tell of agents whose adapters are gone."""
    refused = world.run("metrics", "--all", "--agent", "cluade")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith(
        f"agent-relay: there is no agent 'cluade'\n  Known: {', '.join(tree.agent_names())}"
    )
    assert world.run("metrics", "--all", "--agent=cluade").err == refused.err
    assert _rows(_ask(world, "--all", "--agent", "gemini")) == {}
    journal = Path(world.cwd, ".agent-relay/sessions/01M7Y8XZEX7SAVV4H1XBVMVZT6/journal.jsonl")
    journal.write_text(journal.read_text().replace('"understudy"', '"departed"'))
    assert set(_rows(_ask(world, "--by", "agent", "--agent", "departed"))) == {"departed"}


def test_since_a_day_without_a_midnight_leaves_out_the_hour_before_it(tmp_path: os.PathLike[str]) -> None:
    """Where clocks go from Saturday's 24:00 to Sunday's 01:00, Sunday begins at 04:00 UTC, not at 03:00."""
    world = create_world(f"{tmp_path}")
    moments = ["2026-09-06T03:30:00Z", "2026-09-06T04:00:00Z"]
    rows = [_answer(f"m{number}", at, "own", "/w") for number, at in enumerate(moments)]
    _write(f"{world.home}/.claude/projects/w/own.jsonl", *rows)
    zone = {"TZ": "<-04>4<-03>,M9.1.6/24,M4.1.6/24"}
    words = ("metrics", "--all", "--by", "day", "--json")
    days = _rows(json.loads(world.run_with(zone, *words).out))
    assert {key: row["answers"] for key, row in days.items()} == {"2026-09-05": 1, "2026-09-06": 1}
    late = _rows(json.loads(world.run_with(zone, *words, "--since", "2026-09-06").out))
    assert {key: row["answers"] for key, row in late.items()} == {"2026-09-06": 1}


def test_csv_has_the_fields_of_the_json(world: World) -> None:
    """One line a row under names that stay; a cell that a spreadsheet would compute is text."""
    _write(
        f"{world.home}/.claude/projects/evil/evil.jsonl",
        _answer("m3", "2026-11-20T09:00:30Z", "evil", world.cwd, model="=1+1"),
    )
    rows = list(csv.DictReader(io.StringIO(world.run("metrics", "--csv", "--by", "model").out)))
    assert [(row["key"], row["input_tokens"], row["cost_usd"]) for row in rows] == [
        ("'=1+1", "1000000", ""), (PRICED, "1000000", "8.5"),
    ]  # fmt: skip


def test_wide_numbers_are_never_cut_at_eighty_columns(world: World) -> None:
    """A total that lost its last digits to the edge of the window is a wrong total."""
    place = f"{world.home}/.claude/projects/here"
    big = _answer("m9", "2026-11-20T11:00:00Z", "x" * 40, world.cwd)
    big["message"] = {
        "id": "m9",
        "model": PRICED,
        "usage": {"input_tokens": 999_999_999_999, "output_tokens": 1},
    }
    _write(f"{place}/big.jsonl", big)
    text = world.run("metrics").out
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "999,999,999,999" in text
    assert "1,000,000,999,999" in text
    assert "$5,000,008.50" in text


def test_columns_that_do_not_fit_go_into_another_table() -> None:
    """A name that is cut may be another one's, too: columns move first, then the label gives way, marked."""
    headers, rows = ("what", "first", "second"), [("a long label indeed", "123456789", "987654321")]
    assert render_tables(headers, rows, width=36).splitlines() == [
        "what                     first",
        "a long label indeed  123456789",
        "",
        "what                    second",
        "a long label indeed  987654321",
    ]
    assert render_tables(headers, rows, width=24).splitlines() == [
        "what               first",
        "a long label…  123456789",
        "",
        "what              second",
        "a long label…  987654321",
    ]


def test_wrong_use_is_one_sentence(world: World) -> None:
    """Status 2 and a hint; never a table of something else."""
    for words in (
        *("nobody", "--all VZT6", "--all --chain", "--by moon", "--since yesterday", "--json --csv"),
        *("--since 7y", "own", "claude:"),
    ):
        done = world.run("metrics", *words.split())
        assert (words, done.status, done.out, len(done.err.splitlines())) == (words, 2, "", 2)


@pytest.mark.parametrize(("rows", "shown"), [(TURN, 1), (TURN + FAILED, 3)], ids=["one", "failed"])
def test_a_failed_turn_that_no_model_answered_has_a_row(
    tmp_path: Path, rows: list[dict[str, object]], shown: int
) -> None:
    """The model's row has one turn, and the second is nobody's; a total that adds nothing is left out."""
    world = create_world(f"{tmp_path}/other")
    _write(f"{world.home}/.demo-agent/demo/one.jsonl", BEGUN, *rows)
    head, *table = world.run("metrics", "--all", "--by", "model").out.partition("\n\n")[0].splitlines()
    place = head.split().index("turns") - len(head.split())
    turns = {line.split()[0]: line.split()[place] for line in table}
    assert turns == dict([("scripted", "1"), ("unanswered", "1"), ("total", "2")][:shown])


def test_a_chain_without_a_session_needs_one_here(tmp_path: os.PathLike[str]) -> None:
    """An empty folder has no newest session; nothing used is said in words."""
    world = create_world(f"{tmp_path}")
    assert world.run("metrics", "--chain").status == 2
    done = world.run("metrics")
    assert (done.status, done.out) == (
        0,
        "No usage was found here.\nAll of this machine's: agent-relay metrics --all\n",
    )
    assert world.run("metrics", "--all").out == "No usage was found on this machine.\n"
    assert os.listdir(world.cwd) == []


def test_a_damaged_journal_and_a_bad_database_are_told_of_below_the_figures(world: World) -> None:
    """What can be read is shown; what cannot is a line each, and nothing hides the rest."""
    journal = f"{world.cwd}/.agent-relay/sessions/01M7Y8XZEX7SAVV4H1XBVMVZT6/journal.jsonl"
    with open(journal, "a", encoding="utf-8") as file:
        file.write("not json\n")
    os.makedirs(f"{world.home}/.local/share/opencode")
    Path(f"{world.home}/.local/share/opencode/opencode.db").write_text("no database", "utf-8")
    done = world.run("metrics")
    assert done.status == 0
    assert "own-1 claude" in done.out
    assert "line 20 of" in done.out
    assert "cannot read sessions from" in done.out


def test_nothing_used_is_not_said_of_what_cannot_be_read(tmp_path: os.PathLike[str]) -> None:
    """The only database there is may hold a month's work: without a word of it the figures look whole."""
    world = create_world(f"{tmp_path}")
    os.makedirs(f"{world.home}/.local/share/opencode")
    Path(f"{world.home}/.local/share/opencode/opencode.db").write_text("no database", "utf-8")
    _write(f"{world.home}/.claude/projects/w/own.jsonl", {"type": "assistant", "message": 1}, {})
    unread = [
        "Lines that could not be read: 1.",
        f"cannot read sessions from {world.home}/.local/share/opencode/opencode.db: file is not a database",
    ]
    shown = world.run("metrics", "--all").out.splitlines()
    assert shown == ["No usage was found on this machine, as far as it could be read.", "", *unread]
    for _ in range(2):
        as_csv = world.run("metrics", "--all", "--csv")
        assert (as_csv.status, as_csv.out.count("\n")) == (0, 1)
        assert as_csv.err.splitlines() == [f"agent-relay: {line}" for line in unread]


def test_nothing_is_written_but_the_cache(world: World) -> None:
    """Reading is all it does: no journal, no transcript and no folder of the user's changes."""
    before = {path: os.stat(path).st_mtime_ns for path in _list(world)}
    world.run("metrics", "--all")
    after = _list(world)
    assert {path: os.stat(path).st_mtime_ns for path in before} == before
    new = {os.path.relpath(path, world.home) for path in set(after) - set(before)}
    # A report is kept where what it was made of has rested for a moment, as on a slow machine.
    kept = {one for one in new if one.startswith("cache/reports")}
    assert new - kept <= {"cache", "cache/usage.db", "cache/usage.db.lock"}


def _list(world: World) -> list[str]:
    return [
        os.path.join(folder, name)
        for root in (world.home, world.cwd)
        for folder, folders, files in os.walk(root)
        for name in (*files, *folders)
    ]


def test_what_has_grown_is_read_at_the_next_look(world: World) -> None:
    """A figure of yesterday would be worse than a slow one; each question has an answer of its own."""

    def ask(*words: str) -> object:
        total = _ask(world, *words)["total"]
        assert isinstance(total, dict)
        return total["output_tokens"]

    assert (ask("--all"), ask("--all")) == (200_000, 200_000)
    _write(
        f"{world.home}/.claude/projects/here/own-3.jsonl",
        _answer("m7", "2026-11-20T12:00:30Z", "own-3", world.cwd),
    )
    assert ask("--all") == 300_000
    with open(f"{world.home}/.claude/projects/here/own-1.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(_answer("m8", "2026-11-20T13:00:30Z", "own-1", world.cwd)) + "\n")
    assert ask("--all") == 400_000
    assert len(_rows(_ask(world, "--all", "--by", "model"))) == 2
    assert ask("--all", "--agent", "codex") == 0
    assert world.run("metrics", "--all").out.startswith("session")
