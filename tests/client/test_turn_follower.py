"""Who follows a turn hears of a daemon that lives and does not answer."""

from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.client.connection import NobodyListensError
from agent_relay.client.turn_follower import TurnFollower
from agent_relay.domain.errors import DaemonUnreachableError

pytestmark = pytest.mark.size("test")

if TYPE_CHECKING:
    from agent_relay.client.connection import Connection


class Daemon:
    """Begins a turn, then meets each request to follow it with the next error; at last the turn is over."""

    def __init__(self, *errors: DaemonUnreachableError) -> None:
        self.errors = list(errors)

    def request(self, op: str, **_fields: object) -> dict[str, object]:
        if op == "run.follow" and self.errors:
            raise self.errors.pop(0)
        return {"session": "S", "told": {}, "events": [{"type": "end"}], "over": True}

    def close(self) -> None:
        """Nothing is open."""


def test_a_daemon_that_does_not_answer_is_waited_for_aloud_and_one_that_died_silently() -> None:
    """A stopped daemon had a command wait for minutes without a word; a dead one is replaced at once."""
    warned: list[str] = []
    daemon = Daemon(
        NobodyListensError("the daemon went away"),
        DaemonUnreachableError("run.follow was not answered in time"),
    )
    follower = TurnFollower(
        lambda: cast("Connection", daemon), lambda _event: None, signals=(), warn=warned.append
    )
    assert follower.run({}) == {"type": "end"}
    assert warned == [
        "the daemon does not answer, and this command waits for it (see: agent-relay daemon status)"
    ]
