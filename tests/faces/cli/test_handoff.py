"""Handoffs as records without a daemon: read off journals, hostile and damaged ones included."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.names import build_ulid
from agent_relay.faces.cli.session.handoffs.drawing import Node, draw_tree
from tests.faces.cli_run import World

pytestmark = pytest.mark.size("test")

AT = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SESSION = build_ulid(1_795_000_000_000, b"0123456789")
HANDOFF = build_ulid(1_795_000_000_001, b"0123456789")


def _plant(world: World, *, said: str = "a door") -> str:
    """A session whose handoff waits for a verdict; its packet is gone."""
    bodies = (
        words.SessionCreated(SESSION, world.cwd, world.cwd, ("demo",)),
        words.LegStarting("L1", "demo", 1),
        work.HandoffBegun(
            HANDOFF,
            "L1",
            "demo",
            "understudy",
            "manual",
            deliverables=(said, "../x/y"),
            skipped=("claude: not installed",),
        ),
        words.LegEnded("L1", "stopped"),
        work.PredecessorStopped(HANDOFF, "L1"),
        work.PacketPublished(HANDOFF, "P", 1, "understudy", "resume/0001-u.json", "resume/0001-u.md", "f"),
        words.LegStarting("L2", "understudy", 2, handoff=HANDOFF, lane_why="it had no conversation here"),
        work.HandoffConfirmed(HANDOFF, "L2"),
    )
    return world.plant(SESSION, *((AT + timedelta(seconds=at), body) for at, body in enumerate(bodies)))


def test_records_are_read_without_a_daemon(world: World) -> None:
    """Looking must work where nothing runs, and start nothing."""
    _plant(world, said="doors/front.txt")
    (row,) = json.loads(world.run("handoff", "list", "--json").out)["handoffs"]
    assert (row["handoff"], row["status"], row["duration_s"]) == (HANDOFF, "working", 5.0)
    lane = "read the packet: it had no conversation here"
    assert row["lane"] == {"name": "packet", "why": "it had no conversation here", "text": lane}
    assert f"lane: understudy {lane}" in world.run("handoff", "show", HANDOFF).out
    view = json.loads(world.run("handoff", "show", HANDOFF[-6:].lower(), "--json").out)
    assert view["deliverables"] == [
        {"text": "doors/front.txt", "exists": False},
        {"text": "../x/y", "exists": None},
    ]
    assert view["transferred"]["counts"]["decisions"] == 0
    assert view["transferred"]["problem"]
    assert world.run("handoff", "history").out.partition("\n\n")[2].splitlines() == [
        f"session {SESSION}",
        "└─ leg 1 demo (Nov 20, 18:20-Nov 20, 18:20, stopped)",
        f"   └─ handoff {HANDOFF} → understudy (manual): working, depth 1",
        "      └─ leg 2 understudy (Nov 20, 18:20-, runs)",
    ]
    assert not os.path.exists(f"{world.home}/run")


def test_a_session_is_drawn_over_time_and_printed_for_programs(world: World) -> None:
    """Where neither a terminal nor an agent's record is: the drawing has 80 columns, and usage is unknown."""
    _plant(world)
    drawn = world.run_with({"NO_COLOR": "1"}, "handoff", "history").out.partition("\n\n")[0].splitlines()
    assert drawn[0].startswith("timeline  Nov 20, 18:20 to now, ")
    assert [line.split()[0] for line in drawn[2:5]] == ["demo", "understudy", "handoffs"]
    assert all(len(line) <= 80 for line in drawn)
    ascii_only = world.run_with({"PYTHONIOENCODING": "ascii"}, "handoff", "history")
    assert (ascii_only.status, ascii_only.err) == (0, "")
    view = json.loads(world.run("handoff", "history", "--json").out)
    assert [leg["leg"] for leg in view["legs"]] == ["L1", "L2"]
    told = view["timeline"]
    assert [(lane["agent"], len(lane["legs"])) for lane in told["lanes"]] == [("demo", 1), ("understudy", 1)]
    assert (told["session"], told["handoffs"][0]["handoff"]) == (SESSION, HANDOFF)
    assert told["usage"] == {
        "tokens": None,
        "tokens_are_whole": False,
        "cost_usd": "",
        "cost_is_whole": False,
    }


def test_hostile_words_stay_words(world: World) -> None:
    """Whoever wrote them may not move the cursor of whoever reads them."""
    _plant(world, said="\x1b[2J\u202edoor")
    assert "skipped: claude: not installed" in world.run("handoff", "show", HANDOFF).out
    for line in (("list",), ("show", HANDOFF), ("history",)):
        assert world.run("handoff", *line).out.replace("\n", "").isprintable()
    assert "\\x1b[2J\\u202edoor" in world.run("handoff", "show", HANDOFF).out


def test_a_damaged_journal_hides_no_other_and_is_named_where_it_is_meant(world: World) -> None:
    """One broken session must not cost the list of all."""
    path = _plant(world)
    other = build_ulid(1_795_000_000_002, b"0123456789")
    broken = world.plant(other)
    with open(broken, "w", encoding="utf-8") as file:
        file.write(f'{{"no event": "{HANDOFF}"}}\n')
    assert len(json.loads(world.run("handoff", "list", "--json").out)["handoffs"]) == 1
    assert f"agent-relay doctor --put-aside {other}" in world.run("handoff", "history", other).err
    assert world.run("handoff", "show", HANDOFF).status == 0
    os.unlink(path)
    done = world.run("handoff", "show", HANDOFF)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"agent-relay: no handoff has the id '{HANDOFF}'")


def test_where_nothing_is_that_is_said(world: World) -> None:
    """Each in one sentence with a hint."""
    assert world.run("handoff", "list").out == "No handoff is open.\n"
    assert world.run("handoff", "list", "--for", "claude").out == "No handoff is open.\n"
    refused = world.run("handoff", "list", "--for", "nosuch")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("agent-relay: there is no agent 'nosuch'")
    done = world.run("handoff", "history")
    assert (done.status, done.err) == (
        2,
        "agent-relay: there is no session here\n  See: agent-relay sessions\n",
    )
    for words_ in (("cancel",), ("list", "--nope"), ("show", "A", "B"), ("plan",), ("retry", "")):
        done = world.run("handoff", *words_)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 2)


def test_a_tree_may_be_deeper_than_any_stack() -> None:
    """A year of failovers is one chain."""
    top = deepest = Node("top")
    for number in range(3000):
        deepest.below.append(Node(str(number)))
        deepest = deepest.below[0]
    lines = draw_tree(top)
    assert (len(lines), lines[1], lines[2]) == (3001, "└─ 0", "   └─ 1")
