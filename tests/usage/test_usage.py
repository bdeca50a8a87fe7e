"""Usage read from the agents' files: only what is new, whatever happens to files and index meanwhile."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.values import replace
from agent_relay.transcripts.lenient_json import LINE_BYTES
from agent_relay.usage.record_files import BLOCK_BYTES, find_usage_files
from tests.house import tree
from tests.support.legs import wait_until
from tests.usage.records import LINES, TABLES, answer, count, read, write

CHATS = Transcript(
    reader="gemini-jsonl", folder="{home}/t", pattern="x", usage=("{home}/t/*/chats/**/*.jsonl",)
)


def test_a_second_run_reads_nothing_and_a_grown_file_what_is_new(tmp_path: Path) -> None:
    """Hundreds of megabytes are read once, not at every look."""
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5), answer("m2", 7))
    size = path.stat().st_size
    first = read(tmp_path)
    assert (count(first), first.new_bytes, first.files) == (12, size, 1)
    second = read(tmp_path)
    assert (count(second), second.new_bytes) == (12, 0)
    with path.open("ab") as file:
        file.write(answer("m3", 11))
    third = read(tmp_path)
    assert (count(third), third.new_bytes) == (23, path.stat().st_size - size)
    assert count(read(tmp_path)) == 23


def test_a_line_without_its_end_counts_at_once_and_only_once(tmp_path: Path) -> None:
    """An agent may be writing it, or have died over it: whole it counts, torn it waits for its rest."""
    whole = answer("m2", 7)
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5), whole[:-1])
    assert [count(read(tmp_path)) for _ in range(2)] == [12, 12]
    path.write_bytes(answer("m1", 5) + whole + answer("m3", 11)[:40])
    assert count(read(tmp_path)) == 12
    path.write_bytes(answer("m1", 5) + whole + answer("m3", 11))
    assert count(read(tmp_path)) == 23


@pytest.mark.parametrize("what", ["truncated", "replaced", "rewritten", "rotated", "removed", "same-size"])
def test_a_file_that_is_no_longer_the_same_is_read_anew(tmp_path: Path, what: str) -> None:
    """An offset into another file's middle would count what never was, or miss what is."""
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5), answer("m2", 7))
    assert count(read(tmp_path)) == 12
    match what:
        case "truncated":
            path.write_bytes(answer("m1", 5))
            expected = 5
        case "replaced":
            write(tmp_path / "new", answer("m8", 8), answer("m9", 9), answer("m7", 1)).rename(path)
            expected = 18
        case "rewritten":
            path.write_bytes(answer("m8", 8) + answer("m9", 9) + answer("m7", 1))
            expected = 18
        case "rotated":
            path.rename(path.with_name("s1-old.jsonl"))
            write(path, answer("m3", 3))
            expected = 15
        case "same-size":
            path.write_bytes(answer("m1", 6) + answer("m2", 7))
            os.utime(path, ns=(1, 1))
            expected = 13
        case _:
            path.unlink()
            expected = 0
    assert [count(read(tmp_path)) for _ in range(2)] == [expected, expected]


@pytest.mark.parametrize(
    "what", ["deleted", "torn", "no-database", "newer", "a-folder", "bad-marks", "no-tables", "memory"]
)
def test_the_index_may_be_lost_or_damaged_at_any_time(tmp_path: Path, what: str) -> None:
    """It is a cache: whatever happens to it, the figures stay the same."""
    write(tmp_path / "p/a/s1.jsonl", answer("m1", 5), answer("m2", 7))
    assert count(read(tmp_path)) == 12
    index = tmp_path / "cache/usage.db"
    match what:
        case "deleted":
            index.unlink()
        case "torn":
            index.write_bytes(index.read_bytes()[:3000])
        case "no-database":
            index.write_bytes(b"not a database at all, but long enough to look like one" * 100)
        case "a-folder":
            index.unlink()
            index.mkdir()
        case _:
            database = sqlite3.connect(index)
            database.execute(
                {
                    "newer": "PRAGMA user_version = 999",
                    "bad-marks": "UPDATE marks SET data = x'c1'",
                    "no-tables": "DROP TABLE marks",
                    "memory": "UPDATE files SET entry = x'c1'",
                }[what]
            )
            database.commit()
            database.close()
    assert [count(read(tmp_path)) for _ in range(2)] == [12, 12]


@pytest.mark.size("test")
def test_two_processes_at_once_agree(tmp_path: Path) -> None:
    """A status bar and a person may ask in the same second; neither may spoil the other's index."""
    for number in range(40):
        write(tmp_path / f"p/a/s{number}.jsonl", *(answer(f"m{number}-{one}") for one in range(20)))
    code = (
        "import sys; from agent_relay.usage.native_usage import read_usage; "
        "from agent_relay.domain.documents.adapter import Transcript; "
        "spec = Transcript(reader='claude-jsonl', folder='x', pattern='x', usage=('{home}/p/**/*.jsonl',)); "
        f"read = read_usage({{'one': spec}}, '{tmp_path}/cache/usage.db', home='{tmp_path}', environ={{}}); "
        "print(sum(used.output for native in read.natives for used in native.used))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tree.CHECKOUT, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["800", "800", "800"]
    again = read(tmp_path)
    assert (count(again), again.new_bytes) == (800, 0)


def test_a_cache_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    """A read-only home is no reason to know nothing."""
    write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    write(tmp_path / "cache", b"a file where the folder should be")
    assert [count(read(tmp_path)) for _ in range(2)] == [5, 5]


def test_links_are_followed_once_and_never_in_circles(tmp_path: Path) -> None:
    """People link their sessions' folder elsewhere; a link to a folder above would never end."""
    write(tmp_path / "elsewhere/b/s2.jsonl", answer("m2", 7))
    write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    (tmp_path / "p/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "p/a/up").symlink_to(tmp_path / "p")
    (tmp_path / "p/a/self").symlink_to(tmp_path / "p/a/self")
    (tmp_path / "p/a/again.jsonl").symlink_to(tmp_path / "p/a/s1.jsonl")
    (tmp_path / "p/a/dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "p/a/pipe.jsonl")
    found = find_usage_files(LINES, home=str(tmp_path), environ={})
    assert sorted(os.path.basename(one.path) for one in found) == ["again.jsonl", "s2.jsonl"]
    assert count(read(tmp_path)) == 12
    assert find_usage_files(LINES, home=f"{tmp_path}/nobody", environ={}) == []
    unknown = replace(LINES, usage=("{NOT_SET}/x/*",))
    assert find_usage_files(unknown, home=str(tmp_path), environ={}) == []


def test_a_folder_that_cannot_be_looked_into_is_told_of(tmp_path: Path) -> None:
    """What stands in it counted as nothing, and a budget that was used up as open."""
    write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    assert count(read(tmp_path)) == 5
    (tmp_path / "p").rename(tmp_path / "q")
    (tmp_path / "p").symlink_to("p")
    found = read(tmp_path)
    why = f"cannot look into {tmp_path}/p: Too many levels of symbolic links"
    assert (count(found), found.problems, found.gaps) == (0, [why], {"one": why})
    (tmp_path / "p").unlink()
    (tmp_path / "q").rename(tmp_path / "p")
    back = read(tmp_path)
    assert (count(back), back.new_bytes, back.problems) == (5, 0, [])


def test_lines_larger_than_a_block_are_put_together_or_passed_over(tmp_path: Path) -> None:
    """An answer of 6 MB is an answer; 20 MB without a line's end are no record, and what follows counts."""
    big = answer("m1", 5, text="x" * 6_000_000)
    huge = b'{"type":"user","x":"' + b"y" * 20_000_000 + b'"}\n'
    write(tmp_path / "p/a/s1.jsonl", big, huge, answer("m2", 7))
    assert [count(read(tmp_path)) for _ in range(2)] == [12, 12]
    write(tmp_path / "p/a/s2.jsonl", answer("m3", 11), b"z" * 16_000_000)
    assert [count(read(tmp_path)) for _ in range(2)] == [23, 23]
    with (tmp_path / "p/a/s2.jsonl").open("ab") as file:
        file.write(b"z\n" + answer("m4", 13))
    last = read(tmp_path)
    assert (count(last), last.skipped) == (36, 0)


@pytest.mark.size("test")
@pytest.mark.parametrize("size", [BLOCK_BYTES, LINE_BYTES])
@pytest.mark.parametrize("more", [-2, -1, 0, 1, 2])
def test_lines_about_as_large_as_can_be_read_at_once_are_read(tmp_path: Path, size: int, more: int) -> None:
    """One that just fills the memory there is, its line feed being behind it; one too long is none."""
    bare = len(answer("m1", 5, text="")) - 1
    write(
        tmp_path / "p/a/s1.jsonl", answer("m0", 3), answer("m1", 5, text="x" * (size + more - bare)),
        answer("m2", 7), answer("m3", 9, text="x" * (size - bare)).rstrip(b"\n"),
    )  # fmt: skip
    expected = 3 + (5 if size + more <= LINE_BYTES else 0) + 7 + 9
    assert [count(read(tmp_path)) for _ in range(2)] == [expected, expected]


def test_files_that_cannot_be_read_are_told_of_and_left_out(tmp_path: Path) -> None:
    """One bad file must not hide all the others; a database that is none is one sentence."""
    write(tmp_path / "p/a/s1.jsonl", answer("m1", 5), b"{torn\n")
    write(tmp_path / "o/opencode.db", b"no database")
    found = read(tmp_path, one=LINES, two=TABLES, three=replace(LINES, reader="unknown"))
    assert (count(found), found.skipped) == (5, 1)
    assert [problem.split(":")[0] for problem in found.problems] == [
        f"cannot read sessions from {tmp_path}/o/opencode.db"
    ]


def _fill(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True)
    database = sqlite3.connect(path)
    database.executescript(
        """CREATE TABLE session(id, parent_id, directory);
        CREATE TABLE message(id, session_id, data);
        INSERT INTO session VALUES('s1', NULL, '/w');"""
    )
    return database


def _insert(database: sqlite3.Connection, key: str, at: int, output: int) -> None:
    times = {"created": at, "completed": at + 5}
    data = {"role": "assistant", "time": times, "tokens": {"output": output}, "modelID": "m"}
    database.execute("INSERT INTO message VALUES(?, 's1', ?)", (key, json.dumps(data)))
    database.commit()


@pytest.mark.size("test")
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_is_read_while_its_agent_writes(tmp_path: Path, mode: str) -> None:
    """The agent runs on: what it has committed counts, its lock stops nobody, nothing of it is touched."""
    database = _fill(tmp_path / "o/opencode.db")
    database.execute(f"PRAGMA journal_mode={mode}")
    _insert(database, "m1", 1_795_171_000_000, 5)
    assert count(read(tmp_path, two=TABLES)) == 5
    assert count(read(tmp_path, two=TABLES)) == 5
    wait_until(lambda: not read(tmp_path, two=TABLES).new_bytes, "what has settled is not read again")
    assert count(read(tmp_path, two=TABLES)) == 5
    _insert(database, "m2", 1_795_171_100_000, 7)
    database.execute("BEGIN EXCLUSIVE")
    database.execute("INSERT INTO message VALUES('m3', 's1', 'not yet')")
    assert count(read(tmp_path, two=TABLES)) == 12
    database.rollback()
    database.close()


def test_a_subagents_file_names_neither_folder_nor_parent_and_gets_both(tmp_path: Path) -> None:
    """They stand in the folders above it."""
    write(tmp_path / "t/proj/.project_root", b"/home/user/proj\n")
    header = b'{"sessionId":"%s","startTime":"2026-11-20T10:00:00Z","kind":"%s"}\n'
    answer = b'{"id":"%s","type":"gemini","tokens":{"output":5}}\n'
    write(tmp_path / "t/proj/chats/session-1.jsonl", header % (b"g1", b"main"), answer % b"a")
    write(tmp_path / "t/proj/chats/g1/x.jsonl", header % (b"g2", b"subagent"), answer % b"b")
    natives = read(tmp_path, three=CHATS).natives
    assert [(one.session, one.cwd, len(one.used)) for one in natives] == [("g1", "/home/user/proj", 2)]


def test_files_two_adapters_share_count_once(tmp_path: Path) -> None:
    """Somebody's second adapter of one program reads the same sessions: the total is not twice as high."""
    write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    for _ in range(2):
        found = read(tmp_path, one=LINES, work=LINES)
        assert [(native.agent, len(native.used)) for native in found.natives] == [("one", 1)]


def test_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    """Agents delete old sessions: the index must not grow with what nobody has any more."""
    path = write(tmp_path / "p/a/s1.jsonl", answer("m1", 5))
    read(tmp_path)
    path.unlink()
    read(tmp_path)
    database = sqlite3.connect(tmp_path / "cache/usage.db")
    assert database.execute("SELECT COUNT(*) FROM files").fetchone() == (0,)
    assert database.execute("SELECT COUNT(*) FROM marks").fetchone() == (0,)
    database.close()
