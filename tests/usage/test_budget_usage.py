"""Counting what is used of budgets while files and disks are not as they should be: nothing in silence."""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.domain.limits import Budget, Mark, Spending
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import replace
from agent_relay.usage.budget_usage import BudgetCounter

NOW = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SPECS = {
    "ann": Transcript(reader="claude-jsonl", folder="{home}/p", pattern="x", usage=("{home}/p/*.jsonl",)),
    "bob": Transcript(reader="opencode-db", folder="{home}/o", pattern="opencode*.db"),
}
ANSWER = (
    '{"sessionId":"s1","message":{"id":"m1","model":"m","usage":{"output_tokens":800}},"type":"assistant",'
    '"timestamp":"2026-11-20T10:00:00Z"}\n'
)
USED = "800 tokens of your budget of 1,000 tokens a day is used"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session in a home in which an agent has used 800 tokens today."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p/s1.jsonl").write_text(ANSWER)
    journal = tmp_path / ".agent-relay/sessions/S/journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("")
    leg = Leg("L1", "ann", 1, NOW)
    return Session("S", str(tmp_path), str(tmp_path), NOW, NOW, legs=(leg,))


def count(session: Session, *, index: str = "", agent: str = "") -> Spending:
    """How a budget of 1,000 tokens a day stands."""
    counter = BudgetCounter([Budget("day", agent, 1000)], SPECS, index or f"{session.root}/cache/usage.db")
    (found,) = counter.count(session, now=NOW, zone=UTC, environ={"HOME": session.root})
    return found


def test_a_damaged_index_costs_time_and_no_tokens(session: Session) -> None:
    """It is a cache; what it said is read again."""
    assert count(session).text == USED
    index = Path(session.root, "cache/usage.db")
    for damage in (b"", b"not a database", index.read_bytes()[:3000] + b"\0" * 2000):
        index.write_bytes(damage)
        assert count(session).text == USED
        assert count(session).text == USED


def test_where_no_index_can_be_kept_all_is_counted_all_the_same(session: Session) -> None:
    """A full disk, a folder that is none: the budget is kept, if more slowly."""
    Path(session.root, "none").write_text("")
    assert count(session, index=f"{session.root}/none/usage.db").text == USED
    os.symlink("/dev/full", f"{session.root}/full.db")
    assert count(session, index=f"{session.root}/full.db").text == USED


def test_records_that_cannot_be_read_are_said_to_be_and_counted_once_they_can(session: Session) -> None:
    """What is in them may be what uses up the budget."""
    database = Path(session.root, "o/opencode.db")
    database.parent.mkdir()
    database.write_bytes(b"SQLite format 3\0 and then something else" * 100)
    found = count(session)
    assert (found.mark, found.text.startswith(f"at least {USED}; ")) == (Mark.WARN, True)
    assert str(database) in found.text
    assert count(session, agent="ann").mark is Mark.WARN
    broken = count(session, agent="bob")
    assert broken.mark is Mark.UNCOUNTED
    assert broken.text.startswith(
        "not all that counts for your budget of 1,000 tokens a day for bob can be counted: "
    )
    database.unlink()
    assert count(session).text == USED
    assert count(session, agent="bob").mark is Mark.OPEN


def test_an_agent_without_records_we_can_read_is_said_to_be_one(session: Session) -> None:
    """Its budget would stay at nothing for ever."""
    other = replace(session, legs=(Leg("L1", "eve", 1, NOW),))
    assert count(other, agent="eve").text == (
        "not all that counts for your budget of 1,000 tokens a day for eve can be counted: "
        "eve leaves no records that can be read"
    )


def test_a_damaged_journal_is_an_error_that_names_it(session: Session) -> None:
    """Nothing else may come out: whoever counts tells it, and counts again."""
    journal = f"{session.root}/.agent-relay/sessions/S/journal.jsonl"
    misfit = '{"v":1,"n":1,"at":"2026-11-20T10:00:00+00:00","gen":1,"type":"leg.ready","leg":"L1"}'
    for line in ('{"not": "an event"}', misfit):
        Path(journal).write_text(f"{line}\n")
        with pytest.raises(RelayError, match="journal"):
            count(session)


DAMAGED = ANSWER[:60] + '"}\n'
"""A line that cannot be read, as a disk that was full leaves it once the next one is written."""


def write_records(session: Session, *lines: str) -> Path:
    """The agent's one file of records holds `lines`."""
    path = Path(session.root, "p/s1.jsonl")
    path.write_text("".join(lines))
    return path


def test_lines_inside_a_file_that_cannot_be_read_are_said_to_be_missing(session: Session) -> None:
    """They may be what uses up the budget; how many they are is said also once the file is known."""
    short = ANSWER.replace("800", "100")
    path = write_records(session, short, DAMAGED, DAMAGED)
    for _ in range(2):
        found = count(session)
        assert (found.mark, found.text) == (
            Mark.UNCOUNTED,
            (
                "not all that counts for your budget of 1,000 tokens a day can be counted: "
                "2 lines of ann's records cannot be read"
            ),
        )
    with path.open("a") as file:
        file.write(DAMAGED + ANSWER.replace("m1", "m2"))
    found = count(session)
    assert (found.mark, found.text) == (
        Mark.WARN,
        (
            "at least 900 tokens of your budget of 1,000 tokens a day is used; "
            "3 lines of ann's records cannot be read"
        ),
    )
    assert count(session, agent="bob").mark is Mark.OPEN


def test_a_torn_last_line_means_nothing(session: Session) -> None:
    """It is being written: said every five seconds, it would be said of every agent at work."""
    short = ANSWER.replace("800", "100")
    for torn in (DAMAGED[:-1], ANSWER[:40], '{"type":"assistant","mess'):
        write_records(session, short, torn)
        assert count(session).mark is Mark.OPEN


def test_damage_in_a_file_that_was_not_written_today_costs_the_day_nothing(session: Session) -> None:
    """One bad line of last year would else keep every day's budget uncounted for ever."""
    path = write_records(session, ANSWER.replace("800", "100"), DAMAGED)
    midnight = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp())
    os.utime(path, (midnight - 1, midnight - 1))
    assert count(session).mark is Mark.OPEN
    os.utime(path, (midnight, midnight))
    assert count(session).mark is Mark.UNCOUNTED


def test_damage_in_a_database_is_said_too(session: Session) -> None:
    """Rows are what lines are elsewhere; the log beside it is written first."""
    path = Path(session.root, "o/opencode.db")
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE session (id, parent_id, directory)")
        database.execute("CREATE TABLE message (id, session_id, time_created, data)")
        database.execute("INSERT INTO message VALUES ('a', 's', 1, 'no object')")
        database.commit()
    midnight = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp())
    os.utime(path, (midnight - 1, midnight - 1))
    assert count(session, agent="bob").mark is Mark.OPEN
    Path(f"{path}-wal").write_bytes(b"")
    assert count(session, agent="bob").text.endswith("1 line of bob's records cannot be read")
