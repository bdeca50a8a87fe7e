"""What a successor did with its packet, counted from records the agents themselves wrote."""

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from agent_relay.domain.documents.packet import Attempt, Exchange, ResumePacket, TouchedFile, ValidationRun
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message
from agent_relay.domain.session import Leg
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import TranscriptSource
from agent_relay.usage.packet_use import (
    PacketUse,
    build_packet_use,
    count_tokens,
    find_span,
    fold_packet_use,
    render_packet_use,
    select_facts,
)
from tests.house.tree import CHECKOUT
from tests.transcripts.rows import read_lines, read_sample

AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ASKED = "Which database shall the billing service use, Postgres or SQLite?"


def pack(*files: str, commands: tuple[str, ...] = ()) -> ResumePacket:
    """A packet that names these files and commands, and one question that was answered."""
    return ResumePacket(
        packet_id="P",
        session_id="S",
        sequence=1,
        created_at=AT,
        previous_agent="ada",
        target_agent="bob",
        checkpoint_reason="manual",
        touched_files=tuple(TouchedFile(path=path, status="modified") for path in files),
        validation_runs=tuple(ValidationRun(kind="tests", command=one) for one in commands),
        attempts=(Attempt(summary="make lint"),),
        exchanges=(Exchange(said="Postgres", on=f"I see two ways.\n{ASKED}", is_settled=True),),
    )


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def said(text: str, seconds: float) -> Message:
    return Message("assistant", text, 1, at(seconds))


def ran(command: str, seconds: float) -> CommandRun:
    return CommandRun(command, "", 0, 1, at(seconds))


def did(path: str, seconds: float, action: str = "modified") -> FileChange:
    return FileChange(path, action, 1, at=at(seconds))


def fold(packet: ResumePacket, *events: Message | CommandRun | FileChange) -> PacketUse:
    """The use by a successor that did these things in `/r/sub`."""
    facts = Facts(
        "bob",
        cwd="/r/sub",
        conversation=tuple(one for one in events if isinstance(one, Message)),
        commands=tuple(one for one in events if isinstance(one, CommandRun)),
        files=tuple(one for one in events if isinstance(one, FileChange)),
    )
    return fold_packet_use(packet, facts, root="/r")


def read_opencode_dump() -> Facts:
    """The facts of the recorded session of opencode that edits and runs."""
    path = os.path.join(CHECKOUT, "tests/golden/transcripts/opencode/edit-shell/db-dump.json.gz")
    with gzip.open(path) as file:
        dump = json.load(file)
    rows = {name: tuple(dump.get(name, ())) for name in ("message", "part", "todo")}
    source = TranscriptSource(
        place="db",
        session=dump["session"][0],
        messages=rows["message"],
        parts=rows["part"],
        todos=rows["todo"],
    )
    return READERS["opencode-db"].read(source)


def read_recorded(reader: str, name: str) -> Facts:
    return read_lines(reader, read_sample(f"{name}.jsonl"))


@pytest.mark.parametrize(
    ("read", "file", "command", "counts"),
    [
        (
            partial(read_recorded, "claude-jsonl", "claude-edit"),
            "calc.py",
            "python3 calc.py && ls -la",
            (1, 2, 3),
        ),
        (
            partial(read_recorded, "codex-rollout", "codex-codemode"),
            "calc.py",
            "python3 calc.py  &&  ls -la",
            (1, 1, 4),
        ),
        (partial(read_recorded, "gemini-jsonl", "gemini-edit"), "app.py", "python3 app.py", (0, 1, 1)),
        (read_opencode_dump, "app.py", "python3 app.py", (1, 1, 2)),
    ],
    ids=["claude", "codex", "gemini", "opencode"],
)
def test_recorded_work_is_counted(
    read: Callable[[], Facts], file: str, command: str, counts: tuple[int, int, int]
) -> None:
    """Each agent reads, edits and runs a program; what the packet had told is told apart."""
    facts = read()
    use = fold_packet_use(pack(file, "other.py", commands=(command,)), facts, root=facts.cwd)
    assert (use.files_read_again, use.files_changed, use.events) == counts
    assert (use.files_named, use.commands_named, use.commands_run_again) == (2, 2, 1)
    assert (use.questions, use.recalls, use.lacks) == (0, 0, "")


def test_files_are_the_same_however_they_are_named() -> None:
    """By a tool or a command, from the root or below it."""
    packet = pack("a.py", "sub/b.py", "c d.py")
    use = fold(
        packet,
        did("/r/a.py", 1, "read"),
        ran("cd .. && sed -n '1,20p' /r/a.py", 2),
        ran("cat ./b.py | head -3", 3),
        ran("touch ../c", 4),
        did("/elsewhere/x", 5, "read"),
    )
    assert (use.files_named, use.files_read, use.files_read_again) == (3, 3, 2)


def test_a_question_that_was_answered_counts_as_asked_again() -> None:
    """In other words, too; an answer that asks nothing is no question."""
    use = fold(
        pack(),
        said("Before I begin: **shall the billing service use Postgres or SQLite as its database?**", 1),
        said("Shall I also rename the module?", 2),
        said("Why? Because it is faster.", 3),
    )
    assert (use.questions, use.questions_again) == (2, 1)


def test_the_first_useful_change_is_one_of_the_work_s_own_files() -> None:
    """Notes in another place and relay's own folder are none; before it, everything counts as an event."""
    events = (
        said("I pick it up.", 1),
        ran("/usr/bin/agent-relay recall 'which database'", 2),
        ran("make lint", 3),
        did("/elsewhere/notes.md", 4, "created"),
        did("/r/.agent-relay/x", 5),
        did("core.py", 6),
        said("Done.", 7),
    )
    use = fold(pack(), *events)
    assert (use.recalls, use.commands_run_again, use.files_changed, use.events) == (1, 1, 1, 5)
    answers = [(at(0.5), 1000), (at(5.9), 200), (at(8), 7), (at(-60), 5)]
    assert count_tokens(use, answers, at(0)).tokens == 1200
    assert (count_tokens(use, [], at(0)).tokens, use.tokens) == (None, None)
    assert render_packet_use(count_tokens(use, answers, at(0))) == (
        "0 of 0 named files read again, 1 of 1 named commands run again, 0 of 0 questions asked again,"
        " recall used once, first change after 5 events and 1,200 tokens"
    )


def test_what_is_unknown_stays_unknown() -> None:
    """No count is made up where nothing dates a record, or where there is none."""
    use = fold(pack(), said("Nothing to do.", 1))
    assert (use.events, use.tokens, count_tokens(use, [(at(0), 5)], None).tokens) == (None, None, None)
    assert render_packet_use(use).endswith("recall used 0 times, no change of a file seen")
    undated = Facts("bob", conversation=(Message("assistant", "x", 1),))
    assert select_facts(undated, AT, None) is None
    assert select_facts(undated, None, None) == undated
    change = FileChange("/r/a.py", "modified", 1)
    without = fold_packet_use(
        pack(), Facts("bob", cwd="/r", conversation=undated.conversation, files=(change,)), root="/r"
    )
    assert (without.files_changed, without.events) == (1, None)
    lacking = PacketUse(lacks="its record is gone")
    assert build_packet_use(lacking) == {"lacks": "its record is gone", "text": "unknown: its record is gone"}
    assert render_packet_use(lacking) == "unknown: its record is gone"


def test_only_the_successor_s_own_part_of_a_conversation_counts() -> None:
    """Who goes on in its own conversation had read those files long before."""
    facts = Facts("bob", cwd="/r", files=(did("a.py", 1, "read"), did("a.py", 20, "read"), did("a.py", 40)))
    found = select_facts(facts, at(10), at(30))
    assert found is not None
    assert [one.at for one in found.files] == [at(20)]
    assert json.dumps(build_packet_use(fold_packet_use(pack("a.py"), facts, root="/r")))


def test_hostile_records_are_counted_in_time() -> None:
    """Whatever stands in a command or an answer."""
    huge = "a " * 500_000 + "?"
    use = fold(pack(huge[:1000]), ran(huge, 1), said(huge, 2), did("\0" * 1000, 3, "read"))
    assert (use.commands_run, use.questions) == (1, 1)


def test_what_a_leg_did_before_its_delivery_was_noted_is_its_own() -> None:
    """A busy machine's journal learns of the delivery after the first change; an earlier leg's end counts."""
    legs = [
        Leg("L1", "ada", 1, at(0), ended_at=at(9)),
        Leg("L2", "bob", 1, at(9), ended_at=at(20)),
        Leg("L3", "ada", 1, at(20), resumes=True, ended_at=at(30)),
        Leg("L4", "bob", 1, at(21)),
    ]
    assert find_span(legs, (2,), 2) == (None, at(30))
    assert find_span(legs, (1, 3), 1) == (at(-2), at(19))
    assert find_span(legs, (1, 3), 3) == (at(18), at(40))
    assert find_span(legs, (2, 4), 4) == (at(20), None)
