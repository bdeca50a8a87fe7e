"""Sessions at work in a real daemon with real holders, while people and machines do what they do."""

import json
import os
import signal
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import SessionCreated
from agent_relay.domain.limits import Rest
from agent_relay.domain.state import State
from agent_relay.store.ledger import read_ledger, update_ledger
from agent_relay.store.project import make_session_folder
from tests.support.at_work import WorkingWorld
from tests.support.deleting import delete_folder
from tests.support.leg_client import read_screen, type_into
from tests.support.relay_world import is_daemons, wait_until

pytestmark = pytest.mark.size("every")


@pytest.mark.size("test")
def test_git_clean_in_the_middle_of_work_costs_no_failover(world: WorkingWorld) -> None:
    """`git clean -fdx` deletes what git ignores, our folder with its journal included."""
    session = world.begin(task="paint the shed")
    world.finish_turn(session)
    before = len(world.events(session))
    leg = world.leg_folder(session)
    delete_folder(f"{world.project}/.agent-relay")
    type_into(leg, b"out\r")
    path = f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl"
    wait_until(lambda: os.path.exists(path), "the journal is written again")
    found = world.wait_handed_over(session)
    assert found.task == "paint the shed"
    assert len(world.events(session)) > before
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert Path(f"{world.project}/.agent-relay/.gitignore").read_text("utf-8") == "*\n"


def freeze_holder(world: WorkingWorld, session: str) -> int:
    """The holder of the session's agent answers nobody, and another daemon finds it so."""
    leg = world.session(session).living_leg
    assert leg is not None
    os.kill(leg.holder_pid, signal.SIGSTOP)
    world.restart()
    return leg.holder_pid


@pytest.mark.size("test")
def test_a_holder_that_is_stopped_for_a_while_keeps_its_agent(world: WorkingWorld) -> None:
    """A debugger, a SIGSTOP or a machine out of breath is no reason to kill somebody's agent.

    Where it never answers again, stop must mean stop all the same: neither agent nor holder is left.
    """
    session = world.begin()
    holder = freeze_holder(world, session)
    answer = world.open("demo")
    wait_until(lambda: "does not answer" in str(world.where(session, "trouble")), "it is said")
    os.kill(holder, signal.SIGCONT)
    wait_until(lambda: not world.where(session, "trouble"), "the holder answers again")
    assert answer["session"] == session
    found = world.run_out(session)
    assert found.legs[0].how == "stopped"
    assert len(found.legs) == 2
    freeze_holder(world, session)
    world.stop(session)
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nothing is left")


def test_one_journal_nobody_can_read_does_not_cost_the_others(world: WorkingWorld) -> None:
    """An index names sessions of every repository: some are gone, some are damaged, one is a bug's."""
    session = world.begin()
    spoilt = {
        "01ARZ3NDEKTSV4RRFFQ69G5FAA": b"not json\n",
        "01ARZ3NDEKTSV4RRFFQ69G5FAB": impossible("01ARZ3NDEKTSV4RRFFQ69G5FAB", world.project),
        "01ARZ3NDEKTSV4RRFFQ69G5FAC": b"",
    }
    for name, data in spoilt.items():
        with open(f"{make_session_folder(world.project, name)}/journal.jsonl", "wb") as file:
            file.write(data)
    roots = dict.fromkeys(spoilt, world.project) | {
        "01ARZ3NDEKTSV4RRFFQ69G5FAD": "/nowhere/at/all",
        "01ARZ3NDEKTSV4RRFFQ69G5FAE": "relative",
        "01ARZ3NDEKTSV4RRFFQ69G5FAF": f"{world.project}/.agent-relay/agent-relay.json",
    }
    for name, root in roots.items():
        with open(f"{world.folders.sessions}/{name}.json", "w", encoding="utf-8") as file:
            json.dump({"root": root}, file)
    Path(f"{world.folders.sessions}/01ARZ3NDEKTSV4RRFFQ69G5FAG.json").write_text("[" * 100_000, "utf-8")
    world.restart()
    listed = world.ask("session.list")["sessions"]
    assert isinstance(listed, list)
    assert [entry["session"] for entry in listed] == [session]
    with pytest.raises(RelayError, match=r"line 1 of .* cannot be trusted"):
        world.open("demo", session="01ARZ3NDEKTSV4RRFFQ69G5FAA")
    with pytest.raises(RelayError, match="is gone"):
        world.open("demo", session="01ARZ3NDEKTSV4RRFFQ69G5FAD")
    with pytest.raises(WrongUseError, match="there is no session"):
        world.open("demo", session="01ARZ3NDEKTSV4RRFFQ69G5FAE")
    world.run_out(session)


def impossible(session: str, root: str) -> bytes:
    """A journal whose every line is an event, and whose second cannot follow its first."""
    lines = [
        {"event": "session.created", "data": {"session": session, "root": root, "cwd": root}},
        {"event": "session.woke", "data": {}},
    ]
    whole = [
        {"v": 1, "n": number, "at": "2026-11-21T18:20:00+00:00", "g": 0, **line}
        for number, line in enumerate(lines, 1)
    ]
    return "".join(json.dumps(line) + "\n" for line in whole).encode()


def test_an_agent_whose_daemon_died_before_its_start_was_journalled_can_be_attached(
    world: WorkingWorld,
) -> None:
    """It runs; without its pids in the journal no terminal would ever reach it.

    Its start is journalled before it is ready, even where its prompt stood there before the next daemon did.
    """
    frozen = world.freeze_at("before leg.started")
    terminal = threading.Thread(target=world.open_both, args=("demo", {}))
    terminal.start()
    world.wait_frozen(frozen)
    (leg,) = os.listdir(world.folders.legs)
    wait_until(lambda: "ready" in read_screen(f"{world.folders.legs}/{leg}"), "its prompt stands there")
    world.restart()
    terminal.join()
    (name,) = os.listdir(f"{world.project}/.agent-relay/sessions")
    world.wait_state(name, State.READY)
    told = world.names(name)
    assert told.index("leg.started") < told.index("leg.ready")
    assert world.where(name, "leg") == leg
    assert world.where(name, "socket")


@pytest.mark.size("test")
def test_secrets_in_a_task_a_focus_or_the_environment_reach_no_journal(world: WorkingWorld) -> None:
    """Journals live in repositories and are read aloud in bug reports."""
    world.environ["SHED_TOKEN"] = "quite-a-long-value-4711"
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    session = world.begin(task=f"use {token} and quite-a-long-value-4711")
    answer = world.ask(
        "use", session=session, agent="understudy", focus=f"not {token} but quite-a-long-value-4711"
    )
    assert answer["session"] == session
    world.wait_handed_over(session)
    path = f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl"
    text = Path(path).read_text("utf-8")
    created = world.events(session)[0].body
    assert isinstance(created, SessionCreated)
    assert "[redacted" in created.task
    assert token not in text
    assert "quite-a-long-value-4711" not in text


def test_a_session_that_is_ending_is_not_joined(world: WorkingWorld) -> None:
    """Whoever asks for the agent meanwhile wants one that stays."""
    session = world.begin()
    leg = world.leg_folder(session)
    assert "ready" in read_screen(leg)
    world.ask("session.stop", session=session)
    answer = world.open("demo")
    assert answer["session"] != session
    world.wait_state(session, State.ENDED)


def test_an_agent_that_answers_is_not_said_to_rest_any_more(world: WorkingWorld) -> None:
    """It was tried all the same, and works: others must not pass it over until a reset nobody waits for."""
    seen_at = datetime.now(UTC) - timedelta(hours=1)
    until = datetime.now(UTC) + timedelta(hours=3)
    agents = ("demo", "other")
    rests = [Rest(agent, "", "account", until, "Your limit is reached", seen_at) for agent in agents]
    session = world.begin()
    update_ledger(world.folders.ledger, lambda _: rests)
    world.say(session, "hello")
    wait_until(lambda: len(read_ledger(world.folders.ledger)) == 1, "the agent rests no longer")
    assert [rest.agent for rest in read_ledger(world.folders.ledger)] == ["other"]
