"""Everything printed for people has a JSON form with the same facts."""

import json
import os
from collections.abc import Iterator

import pytest

from agent_relay.domain.state import State
from tests.support.relay_world import RelayWorld
from tests.support.seats import find_session, run, seat, seated_world


@pytest.fixture(scope="module")
def world() -> Iterator[RelayWorld]:
    """A user whose first agent hit its limit and whose second one goes on."""
    with seated_world() as found:
        with seat(found, "agent", "demo", shows="ready | demo") as person:
            session = find_session(found)
            person.type(b"please limit\r", shows="understudy goes on")
            found.wait_for(session, lambda now: len(now.done) == 1, "one handoff was made")
            found.wait_for(session, lambda now: now.state is State.READY, "the successor is ready")
            person.type(b"\x1d/detach\r")
            assert person.wait_for_end() == 0
        yield found


def read_both(world: RelayWorld, *words: str) -> tuple[dict[str, object], str]:
    """The JSON and the human form of a command, which must end alike and say nothing else."""
    plain, view = run(world, *words), run(world, *words, "--json")
    assert (plain.status, plain.err, view.err) == (view.status, "", "")
    found = json.loads(view.out)
    assert isinstance(found, dict)
    return found, plain.out


def rows_of(view: dict[str, object], key: str) -> list[dict[str, object]]:
    rows = view[key]
    assert isinstance(rows, list)
    assert rows
    return rows


def test_sessions_and_limits_are_the_same_for_people_and_programs(world: RelayWorld) -> None:
    """A script that reads another state than its author sees is worse than none."""
    session = find_session(world)
    for word in ("status", "sessions"):
        view, text = read_both(world, word)
        (row,) = rows_of(view, "sessions")
        assert (row["session"], row["agent"], row["state"]) == (session, "understudy", "ready")
        assert (row["handoffs"], row["root"]) == (1, world.project)
        line = text.splitlines()[1].split()
        assert (line[0], line[1], session in line) == ("ready", "understudy", True)
    where = json.loads(run(world, "attach", "--json").out)
    assert (where["session"], where["agent"], where["state"]) == (session, "understudy", "ready")
    assert os.path.exists(where["socket"])
    assert rows_of(read_both(world, "status")[0], "resting")[0]["agent"] == "demo"
    assert "demo rests until " in read_both(world, "status")[1]
    view, text = read_both(world, "limits")
    (limit,) = rows_of(view, "limits")
    assert (limit["agent"], limit["scope"]) == ("demo", "account")
    assert text.splitlines()[1].split()[:3] == ["demo", "usage", "limit"]
    assert str(limit["evidence"]) in text
    assert "You've hit your session limit" in text


def test_metrics_tell_of_the_failover_that_was(world: RelayWorld) -> None:
    """The turn that hit the limit failed, the handoff took its time, and both legs' transcripts are found."""
    session = find_session(world)
    view, text = read_both(world, "metrics")
    (row,) = rows_of(view, "rows")
    assert (row["key"], row["agents"]) == (session, ["demo", "understudy"])
    assert (row["turns"], row["failed_turns"], row["handoffs"], row["limits"]) == (2, 1, 1, 1)
    assert row["legs_without_transcript"] == 0
    took = row["failover_max_s"]
    assert isinstance(took, float)
    events = world.events(session)
    assert 0 < took <= (events[-1].at - events[0].at).total_seconds() + 0.1
    assert text.splitlines()[1].startswith(f"{session[-8:]} demo>understudy")
    legs = rows_of(read_both(world, "metrics", "--by", "leg")[0], "rows")
    assert [(leg["agents"], leg["turns"], leg["failed_turns"]) for leg in legs] == [
        (["demo"], 1, 1), (["understudy"], 1, 0),
    ]  # fmt: skip


def test_what_is_known_of_the_machine_is_the_same_for_people_and_programs(world: RelayWorld) -> None:
    """Bug reports hold one form or the other."""
    view, text = read_both(world, "doctor")
    lines = text.splitlines()
    for finding, line in zip(rows_of(view, "findings"), lines, strict=True):
        assert line.split()[0] == finding["level"]
        assert str(finding["what"]) in line
        assert str(finding["remedy"]) in line
    view, text = read_both(world, "daemon", "status")
    assert view["running"] is True
    stays = {key: value for key, value in view.items() if key not in {"connections", "subscribers"}}
    names = {"daemon": "version", "crashes": "crash reports"}
    told = [f"{names.get(key, key.replace('_', ' '))}: {value}" for key, value in stays.items()]
    assert ["The daemon is running.", *told[1:]] == [
        line for line in text.splitlines() if not line.startswith(("connections:", "subscribers:"))
    ]
    lines = run(world, "daemon", "logs").out.splitlines()
    logged = [json.loads(line) for line in run(world, "daemon", "logs", "--json").out.splitlines()]
    assert [" ".join(filter(None, row.values())) for row in logged] == lines
    assert [row["event"] for row in logged][:1] == ["started"]
