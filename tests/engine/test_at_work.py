"""Sessions at work in a real daemon with real holders, while people and machines do what they do."""

import json
import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import LegReady, LegStarted, SessionCreated
from agent_relay.domain.limits import Rest
from agent_relay.domain.state import State
from agent_relay.store.ledger import read_ledger, update_ledger
from agent_relay.store.project import make_session_folder
from tests.support.at_work import begin, finish_turn, folder_of, has_taken_over, restart, say
from tests.support.deleting import delete_folder
from tests.support.leg_client import read_screen, type_into
from tests.support.relay_world import RelayWorld, is_daemons, is_stopped, wait_until

pytestmark = pytest.mark.size("test")


def test_git_clean_in_the_middle_of_work_costs_no_failover(world: RelayWorld) -> None:
    """`git clean -fdx` deletes what git ignores, our folder with its journal included."""
    session = begin(world, task="paint the shed")
    finish_turn(world, session)
    before = len(world.events(session))
    leg = folder_of(world, session)
    delete_folder(f"{world.project}/.agent-relay")
    type_into(leg, b"out\r")
    path = f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl"
    wait_until(lambda: os.path.exists(path), "the journal is written again")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert found.task == "paint the shed"
    assert len(world.events(session)) > before
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(f"{world.project}/.agent-relay/.gitignore", encoding="utf-8") as file:
        assert file.read() == "*\n"


def test_a_holder_that_is_stopped_for_a_while_keeps_its_agent(world: RelayWorld) -> None:
    """A debugger, a SIGSTOP or a machine out of breath is no reason to kill somebody's agent."""
    session = begin(world)
    leg = world.session(session).living_leg
    assert leg is not None
    os.kill(leg.holder_pid, signal.SIGSTOP)
    restart(world)
    answer = world.open("demo")
    wait_until(lambda: "does not answer" in str(world.ask("where", session=session)["trouble"]), "it is said")
    os.kill(leg.holder_pid, signal.SIGCONT)
    wait_until(lambda: not world.ask("where", session=session)["trouble"], "the holder answers again")
    assert answer["session"] == session
    say(world, session, "out")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert found.legs[0].how == "stopped"
    assert len(found.legs) == 2


def test_a_session_whose_holder_never_answers_again_can_be_ended(world: RelayWorld) -> None:
    """Stop must mean stop: neither the agent nor the holder is left."""
    session = begin(world)
    leg = world.session(session).living_leg
    assert leg is not None
    os.kill(leg.holder_pid, signal.SIGSTOP)
    restart(world)
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nothing is left")


def test_one_journal_nobody_can_read_does_not_cost_the_others(world: RelayWorld) -> None:
    """An index names sessions of every repository: some are gone, some are damaged, one is a bug's."""
    session = begin(world)
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
    with open(f"{world.folders.sessions}/01ARZ3NDEKTSV4RRFFQ69G5FAG.json", "w", encoding="utf-8") as file:
        file.write("[" * 100_000)
    restart(world)
    listed = world.ask("session.list")["sessions"]
    assert isinstance(listed, list)
    assert [entry["session"] for entry in listed] == [session]
    with pytest.raises(RelayError, match=r"line 1 of .* cannot be trusted"):
        world.open("demo", session="01ARZ3NDEKTSV4RRFFQ69G5FAA")
    with pytest.raises(RelayError, match="is gone"):
        world.open("demo", session="01ARZ3NDEKTSV4RRFFQ69G5FAD")
    with pytest.raises(WrongUseError, match="there is no session"):
        world.open("demo", session="01ARZ3NDEKTSV4RRFFQ69G5FAE")
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy took over")


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


def open_in_vain(world: RelayWorld) -> None:
    with pytest.raises(RelayError):
        world.open("demo")


def lose_daemon_before_start(world: RelayWorld, *, age_s: float) -> str:
    """A session whose agent has run for so long when a daemon comes that finds its start in no journal."""
    world.kill_daemons()
    daemon = world.start_daemon(pause_at="before leg.started")
    terminal = threading.Thread(target=open_in_vain, args=(world,))
    terminal.start()
    wait_until(lambda: is_stopped(daemon.pid), "the daemon froze")
    time.sleep(age_s)
    restart(world)
    terminal.join()
    (name,) = os.listdir(f"{world.project}/.agent-relay/sessions")
    return name


def test_a_first_leg_whose_daemon_died_before_it_was_journalled_can_be_attached(world: RelayWorld) -> None:
    """The agent runs; without its pids in the journal no terminal would ever reach it."""
    name = lose_daemon_before_start(world, age_s=0)
    world.wait_for(name, lambda found: found.state is State.READY, "the agent is ready")
    answer = world.ask("where", session=name)
    assert answer["leg"]
    assert answer["socket"]


def test_an_agent_is_journalled_as_started_before_it_is_ready(world: RelayWorld) -> None:
    """Even where its prompt stood on its screen before the daemon that takes it up: who is told finds it."""
    name = lose_daemon_before_start(world, age_s=2)
    world.wait_for(name, lambda found: found.state is State.READY, "the agent is ready")
    told = [type(event.body) for event in world.events(name)]
    assert told.index(LegStarted) < told.index(LegReady)


def test_secrets_in_a_task_a_focus_or_the_environment_reach_no_journal(world: RelayWorld) -> None:
    """Journals live in repositories and are read aloud in bug reports."""
    world.environ["SHED_TOKEN"] = "quite-a-long-value-4711"
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    session = begin(world, task=f"use {token} and quite-a-long-value-4711")
    answer = world.ask(
        "use", session=session, agent="understudy", focus=f"not {token} but quite-a-long-value-4711"
    )
    assert answer["session"] == session
    world.wait_for(session, has_taken_over, "the understudy took over")
    path = f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    created = world.events(session)[0].body
    assert isinstance(created, SessionCreated)
    assert "[redacted" in created.task
    assert token not in text
    assert "quite-a-long-value-4711" not in text


def test_a_near_limit_is_kept_until_the_next_leg(world: RelayWorld) -> None:
    """People want to know before it happens."""
    session = begin(world)
    say(world, session, "near")
    found = world.wait_for(session, lambda found: found.near is not None, "the warning is journalled")
    assert found.near is not None
    assert found.near.text == "You've used 92% of your session limit"
    world.ask("use", session=session, agent="")
    assert world.wait_for(session, has_taken_over, "the understudy took over").near is None


def test_a_session_that_is_ending_is_not_joined(world: RelayWorld) -> None:
    """Whoever asks for the agent meanwhile wants one that stays."""
    session = begin(world)
    leg = folder_of(world, session)
    assert "ready" in read_screen(leg)
    world.ask("session.stop", session=session)
    answer = world.open("demo")
    assert answer["session"] != session
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")


def test_an_agent_that_answers_is_not_said_to_rest_any_more(world: RelayWorld) -> None:
    """It was tried all the same, and works: others must not pass it over until a reset nobody waits for."""
    seen_at = datetime.now(UTC) - timedelta(hours=1)
    until = datetime.now(UTC) + timedelta(hours=3)
    agents = ("demo", "other")
    rests = [Rest(agent, "", "account", until, "Your limit is reached", seen_at) for agent in agents]
    session = begin(world)
    update_ledger(world.folders.ledger, lambda _: rests)
    say(world, session, "hello")
    wait_until(lambda: len(read_ledger(world.folders.ledger)) == 1, "the agent rests no longer")
    assert [rest.agent for rest in read_ledger(world.folders.ledger)] == ["other"]
