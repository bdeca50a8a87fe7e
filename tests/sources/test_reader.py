"""A source finds this leg's files as they appear, and nobody else's."""

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.limits import Record, Source
from agent_relay.sources._source_reader import SourceReader
from tests.support.heard import build_place

DEEP = "{home}/sessions/*/*/rollout-*{native_id}.jsonl"


def spec(path: str, framing: str = "jsonl", **more: object) -> SourceSpec:
    """A transcript source."""
    return SourceSpec.parse({"role": "transcript", "framing": framing, "path": path, **more})


def write(path: Path, *lines: object) -> str:
    """Append records, making the folders on the way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return str(path)


def numbers(records: list[Record]) -> list[object]:
    """The field `n` of each record."""
    return [record.data.get("n") for record in records]


def look(reader: SourceReader) -> list[object]:
    """Find and read."""
    reader.resolve()
    return numbers(reader.look())


def make_old(path: str) -> None:
    """Last written long before the leg."""
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_a_record_says_its_source_its_time_and_its_place(tmp_path: Path) -> None:
    """Evidence is shown to people: where it stands is part of it."""
    path = write(tmp_path / "t.jsonl", {"timestamp": "2100-01-01T00:00:00Z"}, {"n": 2})
    reader = SourceReader(spec("{home}/t.jsonl"), build_place(home=str(tmp_path)), state={})
    reader.resolve()
    first, second = reader.look()
    assert (first.source, first.at and first.at.year, first.where) == (Source.TRANSCRIPT, 2100, f"{path}:0")
    assert (second.at, second.where) == (None, f"{path}:38")


def test_where_an_agent_keeps_its_file_open_only_that_one_is_read(tmp_path: Path) -> None:
    """A plain agent in the same folder says the same of itself: its limit is not ours."""
    place = build_place(home=str(tmp_path), cwd="/r", pid=str(os.getpid()))
    reader = SourceReader(
        spec("{home}/s/rollout-*.jsonl", belongs={"payload.cwd": "{cwd}"}, held_open=True), place
    )
    write(tmp_path / "s/rollout-theirs.jsonl", {"payload": {"cwd": "/r"}, "n": 1})
    ours = write(tmp_path / "s/rollout-ours.jsonl", {"payload": {"cwd": "/r"}, "n": 2})
    with open(ours, "ab"):
        assert look(reader) == [2]
    write(tmp_path / "s/rollout-ours.jsonl", {"n": 3})
    assert look(reader) == [3]


@pytest.mark.size("test")
def test_where_an_agent_that_is_gone_kept_its_file_open_one_that_nobody_has_open_is_read(
    tmp_path: Path,
) -> None:
    """Its last words may come with its end, and are not to be lost for that."""
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    place = build_place(home=str(tmp_path), cwd="/r", pid=str(process.pid))
    reader = SourceReader(
        spec("{home}/s/rollout-*.jsonl", belongs={"payload.cwd": "{cwd}"}, held_open=True), place
    )
    write(tmp_path / "s/rollout-ours.jsonl", {"payload": {"cwd": "/r"}, "n": 1})
    theirs = write(tmp_path / "s/rollout-theirs.jsonl", {"payload": {"cwd": "/r"}, "n": 2})
    with (
        open(theirs, "ab") as file,
        subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=file) as holder,
    ):
        assert look(reader) == [1]
        holder.communicate()


def test_a_file_whose_telling_record_is_not_meant_is_a_strangers(tmp_path: Path) -> None:
    """A subagent's transcript lies beside its parent's and names the same folder."""
    place = build_place(home=str(tmp_path), cwd="/r")
    reader = SourceReader(
        spec(
            "{home}/s/*.jsonl", belongs={"payload.cwd": "{cwd}"}, belongs_where={"absent": ["payload/parent"]}
        ),
        place,
    )
    below = {"payload": {"cwd": "/r", "parent": "p"}, "n": 1}
    write(tmp_path / "s/below.jsonl", below, {"payload": {"cwd": "/r"}, "n": 2})
    write(tmp_path / "s/own.jsonl", {"payload": {"cwd": "/r"}, "n": 3})
    assert look(reader) == [3]


def test_what_was_there_before_the_leg_is_history(tmp_path: Path) -> None:
    """A resumed session goes on in its old file; a copied history carries old times."""
    place = build_place(home=str(tmp_path))
    path = tmp_path / "t.jsonl"
    write(path, {"n": 1})
    reader = SourceReader(spec("{home}/t.jsonl"), place)
    old = (place.started_at - timedelta(hours=1)).isoformat()
    just = (place.started_at - timedelta(seconds=1)).isoformat()
    write(path, {"n": 2}, {"n": 3, "timestamp": old}, {"n": 4, "timestamp": just})
    assert look(reader) == [2, 4]


def test_a_transcript_that_appears_later_is_found_and_foreign_ones_are_not(tmp_path: Path) -> None:
    """Another leg in another folder writes its own transcript beside ours at the same time."""
    place = build_place(home=str(tmp_path), cwd="/r/ours", native_id="")
    make_old(write(tmp_path / "sessions/a/b/rollout-0.jsonl", {"payload": {"cwd": "/r/ours"}, "n": 0}))
    reader = SourceReader(spec(DEEP, belongs={"payload.cwd": "{cwd}"}), place)
    assert look(reader) == []
    write(tmp_path / "sessions/a/c/rollout-1.jsonl", {"payload": {"cwd": "/r/theirs"}, "n": 1})
    ours = write(tmp_path / "sessions/a/c/rollout-2.jsonl", {"no": "cwd"})
    assert look(reader) == []
    write(tmp_path / "sessions/a/c/rollout-2.jsonl", {"payload": {"cwd": "/r/ours"}, "n": 2})
    assert look(reader) == [None, 2]
    assert reader.folders == {str(tmp_path / "sessions"), os.path.dirname(ours)}
    write(tmp_path / "sessions/a/c/rollout-1.jsonl", {"n": 3})
    assert look(reader) == []
    assert not reader.meet(str(tmp_path / "sessions/a/c/rollout-1.jsonl"))
    assert not reader.meet(str(tmp_path / "sessions/a/c/rollout-none.jsonl"))


def test_a_session_begun_anew_is_followed_without_letting_go_of_the_old_one(tmp_path: Path) -> None:
    """Clearing, forking and subagents begin new files."""
    reader = SourceReader(spec(DEEP), build_place(home=str(tmp_path)))
    first, second = tmp_path / "sessions/a/b/rollout-1.jsonl", tmp_path / "sessions/a/c/rollout-2.jsonl"
    write(first, {"n": 1})
    assert look(reader) == [1]
    write(second, {"n": 2})
    write(first, {"n": 3})
    assert sorted(map(str, look(reader))) == ["2", "3"]


def test_learning_the_native_id_narrows_to_its_file(tmp_path: Path) -> None:
    """A hook tells it; from then on nothing else can be meant."""
    place = build_place(home=str(tmp_path))
    reader = SourceReader(spec(DEEP), place)
    one, two = tmp_path / "sessions/a/b/rollout-1.jsonl", tmp_path / "sessions/a/b/rollout-2.jsonl"
    write(one, {"n": 1})
    write(two, {"n": 2})
    assert sorted(map(str, look(reader))) == ["1", "2"]
    reader.update(LegPlace("leg", place.started_at, {**place.values, "native_id": "2"}))
    write(one, {"n": 3})
    write(two, {"n": 4})
    assert look(reader) == [4]


def test_a_source_whose_values_are_unknown_waits_for_them(tmp_path: Path) -> None:
    """The agent's pid is known only once it runs."""
    place = build_place(home=str(tmp_path))
    reader = SourceReader(spec("{home}/{pid}.json", "json"), place)
    assert (look(reader), reader.folders, reader.pattern, reader.is_literal) == ([], set(), None, True)
    assert not reader.meet("/x")
    write(tmp_path / "7.json", {"n": 7})
    reader.update(LegPlace("leg", place.started_at, {**place.values, "pid": "7"}))
    assert look(reader) == [7]


def test_a_document_in_place_counts_once_it_changes(tmp_path: Path) -> None:
    """A state file left by an earlier process says nothing about this one."""
    path = tmp_path / "s.json"
    make_old(write(path, {"n": 1}))
    reader = SourceReader(spec("{home}/s.json", "json"), build_place(home=str(tmp_path)))
    assert look(reader) == []
    path.write_text('{"n":2}', encoding="utf-8")
    assert look(reader) == [2]


def test_the_newest_files_are_read_when_there_are_too_many(tmp_path: Path) -> None:
    """A runaway agent's hundred files cost eight."""
    reader = SourceReader(spec(DEEP), build_place(home=str(tmp_path)))
    for number in range(20):
        path = write(tmp_path / f"sessions/a/b/rollout-{number}.jsonl", {"n": number})
        os.utime(path, (2e9 + number, 2e9 + number))
    assert look(reader) == [12, 13, 14, 15, 16, 17, 18, 19]
    path = write(tmp_path / "sessions/a/b/rollout-20.jsonl", {"n": 20})
    os.utime(path, (3e9, 3e9))
    assert reader.meet(path)
    assert numbers(reader.look()) == [20]


def test_a_folder_that_does_not_exist_is_watched_through_its_nearest_parent(tmp_path: Path) -> None:
    """Agents make their folders when they first need them."""
    reader = SourceReader(spec("{home}/x/y/t.jsonl"), build_place(home=str(tmp_path)))
    assert reader.folders == {str(tmp_path)}
    (tmp_path / "x").mkdir()
    assert reader.folders == {str(tmp_path / "x")}


def test_a_reader_goes_on_from_what_another_kept(tmp_path: Path) -> None:
    """The daemon may be killed at any moment; files it had not met again count from what it knew of them."""
    place = build_place(home=str(tmp_path))
    old, path = tmp_path / "sessions/a/b/rollout-0.jsonl", tmp_path / "sessions/a/b/rollout-1.jsonl"
    make_old(write(old, {"n": 0}))
    reader = SourceReader(spec(DEEP), place)
    write(path, {"n": 1})
    assert look(reader) == [1]
    state = json.loads(json.dumps(reader.state()))
    write(path, {"n": 2})
    write(old, {"n": 3})
    again = SourceReader(spec(DEEP), place, state=state)
    assert json.loads(json.dumps(again.state())) == state
    assert sorted(map(str, look(again))) == ["2", "3"]
    assert look(SourceReader(spec(DEEP), place, state={"files": 3, "seen": {str(old): "x"}})) != []


def test_a_file_that_vanishes_while_looked_at_is_passed_over(tmp_path: Path) -> None:
    """A dangling link stands for it: it is listed, and there is nothing behind it."""
    os.symlink(tmp_path / "none", tmp_path / "dangling")
    reader = SourceReader(spec("{home}/*"), build_place(home=str(tmp_path)))
    assert look(reader) == []
    assert reader.state() == {"seen": {}, "files": {}}
