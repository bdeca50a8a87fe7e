"""A daemon that lives on while the machine's clocks go from winter to summer time."""

from datetime import UTC, datetime, timedelta

from agent_relay.system.ledger import read_ledger
from tests.support.at_work import begin, has_taken_over, say
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import relay_world

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
SCENES = [{"when": "out", "do": [LIMIT]}]


def zone_that_changes(at: datetime) -> str:
    """A `TZ` that is UTC up to the minute of `at`, and an hour ahead of it for some days after that."""
    first, last = at.timetuple().tm_yday - 1, (at + timedelta(days=20)).timetuple().tm_yday - 1
    return f"AAA0BBB,{first}/{at:%H:%M},{last}"


def test_a_reset_after_the_clocks_change_is_told_as_the_clocks_will_show_it() -> None:
    """An offset kept from the daemon's start would tell an hour less, and understand an hour too much.

    The clocks go forward in an hour, the limit ends in two.
    """
    with relay_world() as world:
        zone = zone_that_changes(datetime.now(UTC) + timedelta(hours=1))
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=SCENES) | {"TZ": zone}
        world.start_daemon()
        session = begin(world)
        say(world, session, "out")
        world.wait_for(session, has_taken_over, "the understudy took over")
        (rest,) = read_ledger(world.folders.ledger)
        assert rest.until is not None
        shown = f"{rest.until.astimezone(UTC) + timedelta(hours=1):%H:%M}"
        assert f"{shown})" in str(world.ask("where", session=session)["message"])
