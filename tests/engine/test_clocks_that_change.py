"""Daemons that live on, or begin, while the machine's clocks are set."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay.domain.names import get_journal_path
from agent_relay.store.ledger import read_ledger
from tests.support.at_work import working_world

pytestmark = pytest.mark.size("every")


def zone_that_changes(at: datetime) -> str:
    """A `TZ` that is UTC up to the minute of `at`, and an hour ahead of it for some days after that."""
    first, last = at.timetuple().tm_yday - 1, (at + timedelta(days=20)).timetuple().tm_yday - 1
    return f"AAA0BBB,{first}/{at:%H:%M},{last}"


def test_a_reset_after_the_clocks_change_is_told_as_the_clocks_will_show_it() -> None:
    """An offset kept from the daemon's start would tell an hour less, and understand an hour too much.

    The clocks go forward in an hour, the limit ends in two.
    """
    with working_world(starts=False) as world:
        world.environ["TZ"] = zone_that_changes(datetime.now(UTC) + timedelta(hours=1))
        session = world.begin()
        world.run_out(session)
        (rest,) = read_ledger(world.folders.ledger)
        assert rest.until is not None
        shown = f"{rest.until.astimezone(UTC) + timedelta(hours=1):%H:%M}"
        assert f"{shown})" in str(world.where(session, "message"))


def test_a_limit_acts_although_the_clock_was_set_back_while_no_daemon_ran() -> None:
    """By the journal alone the agent would begin in three hours, and all it says be history."""
    with working_world() as world:
        session = world.begin()
        world.kill_daemons()
        journal = Path(get_journal_path(world.project, session))
        journal.write_text("".join(shift(line) for line in journal.read_text().splitlines()))
        world.start_daemon()
        world.run_out(session)
        assert world.names(session).count("clock.set-back") == 1


def shift(line: str) -> str:
    """The journal's line, written by a clock that was three hours ahead of the one of now."""
    row = json.loads(line)
    at = datetime.fromisoformat(row["at"]) + timedelta(hours=3)
    return json.dumps({**row, "at": at.isoformat()}) + "\n"
