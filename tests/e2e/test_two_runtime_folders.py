"""One user, two runtime folders: no healthy agent is taken for lost, and no tree gets a second one."""

import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from agent_relay.system.processes import is_alive
from tests.support.neighbours import (
    CAN_ENCLOSE,
    Container,
    LoginWorld,
    Neighbour,
    begin,
    neighbours,
    read_child,
)
from tests.support.relay_world import RelayWorld, kill, wait_until
from tests.support.seats import run
from tests.support.sizes import sized

Both = tuple[LoginWorld, Neighbour]


@pytest.fixture
def both() -> Iterator[Both]:
    """A login with an agent's daemon to be, and the same user without the login's runtime folder."""
    with neighbours() as made:
        yield made


def begin_without_daemon(world: RelayWorld) -> tuple[str, int, int]:
    """The same; its daemon was killed since."""
    world.start_daemon()
    begun = begin(world)
    world.kill_daemons()
    return begun


def test_an_agent_of_another_runtime_folder_is_not_lost_because_its_daemon_is(both: Both) -> None:
    """Cron looks at the repository of a login whose daemon was killed: the person's agent works on."""
    login, cron = both
    session, pid, born = begin_without_daemon(login)
    cron.start_daemon()
    assert is_alive(pid, born)
    assert login.session(session).state is State.READY
    with pytest.raises(RelayError, match="runtime folder") as refused:
        cron.ask("session.stop", session=session)
    assert f"XDG_RUNTIME_DIR={login.environ['XDG_RUNTIME_DIR']} agent-relay stop" in refused.value.hint
    login.start_daemon()
    login.ask("session.stop", session=session)
    login.wait_for(session, lambda found: found.state is State.ENDED, "its own owner ends it")


@pytest.mark.parametrize("is_daemon_killed", sized([False, True], [False]))
def test_a_tree_with_an_agent_gets_no_second_one_from_another_runtime_folder(
    both: Both, *, is_daemon_killed: bool
) -> None:
    """Two agents in one tree write over each other, and neither knows why."""
    login, cron = both
    login.start_daemon()
    begin(login)
    if is_daemon_killed:
        login.kill_daemons()
    cron.start_daemon()
    for wish in ({}, {"new": True}):
        with pytest.raises(RelayError, match="is at work in"):
            cron.open("demo", **wish)
    done = run(cron, "run", "demo", "say hello")
    assert done.status == 1
    assert "is at work in" in done.err
    assert len(login.find_agents()) == 1
    assert f"the runtime folder {login.folders.runtime} is at work in" in run(cron, "doctor").out


def test_a_tree_is_free_for_the_other_runtime_folder_once_its_session_has_ended(both: Both) -> None:
    """What nobody uses is not kept from anybody."""
    login, cron = both
    login.start_daemon()
    session, _, _ = begin(login)
    cron.start_daemon()
    login.ask("session.stop", session=session)
    login.wait_for(session, lambda found: found.state is State.ENDED, "it has ended")

    def opens() -> bool:
        with contextlib.suppress(RelayError):
            return bool(cron.open("demo")["session"])
        return False

    wait_until(opens, "the other one may begin")


def test_what_died_with_its_holder_in_another_runtime_folder_is_taken_up(both: Both) -> None:
    """A session whose every process is gone must not wait for a folder nobody uses any more."""
    login, cron = both
    daemon = login.start_daemon()
    session, _, _ = begin(login)
    cron.start_daemon()
    for pid in (daemon.pid, *login.processes()):
        if pid not in {one.pid for one in cron.daemons}:
            kill(pid)
    daemon.wait()
    cron.ask("where", session=session)
    cron.wait_for(session, lambda found: found.legs[0].is_over, "the lost leg is known to be over")


def edit_owner(world: RelayWorld, session: str, **fields: str) -> None:
    """Journal and tree say that the leg is of another boot, host or namespace; its daemon must be gone."""
    path = f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, value in fields.items():
        text, count = re.subn(rf'"{name}":"[^"]*"', f'"{name}":{json.dumps(value)}', text)
        assert count == 1, name
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    record = f"{world.project}/.agent-relay/owner/owner.json"
    with open(record, encoding="utf-8") as file:
        known = json.load(file)
    with open(record, "w", encoding="utf-8") as file:
        json.dump({**known, **fields}, file)


@pytest.mark.size("test")
def test_a_pid_of_before_a_reboot_is_never_signalled(both: Both) -> None:
    """Pids and birth ticks come again after a boot: whoever has them now is somebody else."""
    login, _ = both
    session, pid, born = begin_without_daemon(login)
    # The holder is out of reach as after a reboot, and the process with that pid and birth is "another".
    # Stopped, for it would make its folder anew.
    os.kill(login.session(session).legs[0].holder_pid, signal.SIGSTOP)
    edit_owner(login, session, boot="a-boot-before-this-one")
    os.rename(login.folders.runtime, f"{login.folders.runtime}-before")
    login.start_daemon()
    login.wait_for(session, lambda found: found.legs[0].is_over, "the leg is known to be lost")
    assert is_alive(pid, born)


def test_a_tree_another_host_may_work_in_is_had_by_hand_only(both: Both) -> None:
    """Over a shared disk nothing tells whether the other machine's agent lives; a person knows."""
    login, _ = both
    daemon = login.start_daemon()
    session, pid, born = begin(login)
    for found in [*login.processes()]:
        kill(found)
    daemon.wait()
    edit_owner(login, session, boot="another-boot", host="attic", machine="0123456789abcdef")
    login.start_daemon()
    with pytest.raises(RelayError, match="agent-relay on attic may be at work") as refused:
        login.open("demo")
    assert "agent-relay take-over" in refused.value.hint
    assert login.session(session).state is State.READY
    done = run(login, "take-over")
    assert done.status == 0, done.err
    assert "is yours" in done.out
    login.wait_for(session, lambda found: found.legs[0].is_over, "its leg is known to be over")
    assert not is_alive(pid, born)
    login.open("demo", new=True)


def test_a_tree_whose_owner_lives_on_this_machine_is_not_taken_over(both: Both) -> None:
    """A person may be wrong about what is gone; a lock that is held is not."""
    login, cron = both
    session, pid, born = begin_without_daemon(login)
    edit_owner(login, session, boot="another-boot", host="attic", machine="0123456789abcdef")
    cron.start_daemon()
    done = run(cron, "take-over")
    assert done.status == 1
    assert is_alive(pid, born)


@pytest.fixture
def container(both: Both) -> Iterator[Container]:
    """A container with the login's home and project."""
    made = Container(both[0])
    try:
        yield made
    finally:
        made.end()


@pytest.mark.skipif(not CAN_ENCLOSE, reason="this user may not make a pid namespace")
def test_an_agent_beyond_a_pid_namespace_is_left_alone_until_its_container_is_gone(
    both: Both, container: Container
) -> None:
    """A container's pids mean other processes outside: they are no reason to take an agent for dead."""
    login, _ = both
    container.start()
    session = str(container.open("demo")["session"])
    container.wait_for(session, lambda found: found.state is State.READY, "the agent in there is ready")
    kill(read_child(container.daemons[0].pid))
    container.daemons[0].wait()
    login.start_daemon()
    with pytest.raises(RelayError, match="another container on this machine is at work"):
        login.open("demo")
    assert login.session(session).state is State.READY
    container.end()
    login.ask("where", session=session)
    login.wait_for(session, lambda found: found.legs[0].is_over, "its leg is known to be over")
