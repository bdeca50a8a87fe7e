"""Adopting a conversation whose own program may still run, under a real daemon: one owner, whoever asks."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

NATIVE_ID = "3f069207-a498-4908-9635-da83670671ea"
RUNS = 3


class Program:
    """A program a person started in `cwd` without relay, and the conversation `agent` keeps of it.

    After `continues_s` it writes into its folder, as an agent that goes on by itself does. It has its
    transcript open where `holds` says so, and is called like the demo agent where it does not.
    """

    def __init__(
        self,
        world: WorkingWorld,
        cwd: str,
        *,
        agent: str = "demo",
        holds: bool = False,
        continues_s: float = 60,
    ) -> None:
        self.cwd = cwd
        folder = f"{world.home}/.demo-agent/{agent}"
        os.makedirs(folder, exist_ok=True)
        self.transcript = f"{folder}/{NATIVE_ID[:-8]}{abs(hash(cwd)) % 10**8:08d}.jsonl"
        opened = f"exec 3<'{self.transcript}'; " if holds else ""
        script = f"{opened}sleep {continues_s} 3<&-; echo more > went-on; sleep 600 3<&-"
        name = "anything" if holds else "agent.py"
        at = datetime.now(UTC).isoformat()
        native_id = os.path.basename(self.transcript).removesuffix(".jsonl")
        rows: list[dict[str, object]] = [
            {"type": "session", "at": at, "id": native_id, "agent": agent, "cwd": cwd},
            {"type": "prompt", "at": at, "text": "paint the shed"},
            {"type": "say", "at": at, "text": "I will begin with the door."},
        ]
        Path(self.transcript).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        self.process = subprocess.Popen(
            [name, "-c", script], executable="/bin/sh", cwd=cwd, env=world.environ, start_new_session=True
        )
        # Its last words are newer than its start, by whatever clock those are told.
        changed = time.time() + 5
        os.utime(self.transcript, (changed, changed))

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        if self.lives:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def program(world: WorkingWorld) -> Iterator[Program]:
    """A person's own demo agent at work in the project."""
    made = Program(world, world.project)
    yield made
    made.end()


def adopt(world: WorkingWorld, agent: str = "understudy", **fields: object) -> Session:
    """The session that `agent` is to go on with, once the daemon answered."""
    answer = world.open(agent, **{"from": "demo", **fields})
    return world.session(str(answer["session"]))


def find_legs(world: WorkingWorld, cwd: str) -> list[int]:
    """The processes of relay's agents at work in `cwd`."""
    agents = [pid for pid, command in world.processes().items() if "/agent.py --" in command]
    # A program that an agent starts is called as the agent is until it is itself.
    return [pid for pid in agents if _read_cwd(pid) == cwd and _leads_session(pid)]


def _leads_session(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid) == pid
    return False


def _read_cwd(pid: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/cwd")
    return ""


@pytest.mark.size("test")
def test_a_running_program_keeps_its_conversation_until_its_user_gives_it_up(
    world: WorkingWorld, program: Program
) -> None:
    """It may go on by itself at its reset; a successor beside it would be a second owner."""
    with pytest.raises(WrongUseError, match="and may go on with that session itself") as refused:
        adopt(world)
    assert refused.value.hint == (
        "Quit demo first, or let relay end it: agent-relay understudy --from demo --yes"
    )
    assert program.lives
    adopted = adopt(world, yes=True)
    assert not program.lives
    world.wait_handed_over(adopted.id)


def test_nobody_is_ended_for_a_successor_that_cannot_come(world: WorkingWorld, program: Program) -> None:
    """The night would be lost: the program that would have gone on is gone, and nobody has its work."""
    path = Path(add_adapter(world, "stranger"), "adapter.toml")
    # Nothing this machine has signs it in.
    path.write_text('sign_in_files = ["{home}/.nowhere/token"]\n' + path.read_text("utf-8"), "utf-8")
    with pytest.raises(RelayError, match="stranger: not signed in"):
        adopt(world, "stranger", yes=True, needs=["edit"])
    assert program.lives


def test_a_program_that_has_its_transcript_open_is_known_by_that(world: WorkingWorld) -> None:
    """What it is called, and where it runs, says nothing then: it is the file that tells."""
    _hold_open(add_adapter(world, "keeper"))
    elsewhere = f"{world.folder}/elsewhere"
    os.makedirs(elsewhere)
    other = Program(world, elsewhere)
    holding = Program(world, world.project, agent="keeper", holds=True)
    try:
        with pytest.raises(
            WrongUseError, match=rf"keeper still runs in .* \(process {holding.process.pid}\)"
        ):
            adopt(world, **{"from": "keeper"})
        adopted = adopt(world, **{"from": "keeper", "yes": True})
        assert not holding.lives
        assert other.lives
        world.wait_handed_over(adopted.id)
    finally:
        other.end()
        holding.end()


def _hold_open(folder: str) -> None:
    """The agent of the adapter in `folder` has its transcript open for as long as it works."""
    path = Path(folder, "adapter.toml")
    text = path.read_text("utf-8").replace('.demo-agent}/demo"', '.demo-agent}/keeper"')
    path.write_text(text.replace('reader = "demo-jsonl"', 'reader = "demo-jsonl"\nheld_open = true'), "utf-8")


def test_a_packet_made_beforehand_is_no_way_around_the_program(world: WorkingWorld, program: Program) -> None:
    """The session exists then, and the program that may go on with its work is still there.

    A handoff by name leads to the same start, and starts nobody beside it either.
    """
    saved = adopt(world, no_launch=True)
    assert saved.state is State.ENDED
    with pytest.raises(WrongUseError, match="and may go on with that session itself") as refused:
        world.open("understudy", session=saved.id)
    assert refused.value.hint == (
        f"Quit demo first, or let relay end it: agent-relay understudy --session {saved.id} --yes"
    )
    world.ask("use", session=saved.id, agent="understudy", yes=True)
    world.wait_state(saved.id, State.RESTING)
    assert find_legs(world, world.project) == []
    assert program.lives
    world.open("understudy", session=saved.id, yes=True)
    assert not program.lives
    world.wait_handed_over(saved.id)


def test_a_conversation_that_a_session_goes_on_with_is_not_adopted_again(world: WorkingWorld) -> None:
    """Relay's own agent would be the second owner; a person may still hand that session over."""
    session = world.begin_worked("paint the shed")
    with pytest.raises(WrongUseError, match="already works on that session of demo") as refused:
        adopt(world, new=True)
    assert refused.value.hint == f"Hand that one over: agent-relay understudy --session {session}"
    world.open("understudy", session=session)
    world.wait_handed_over(session)
    with pytest.raises(WrongUseError, match="already works on that session of demo"):
        adopt(world, new=True)


@pytest.mark.parametrize("holds", [False, True], ids=["by its name", "by its open file"])
def test_terminals_that_ask_at_once_around_the_reset_find_one_owner(
    world: WorkingWorld, *, holds: bool
) -> None:
    """Before, at and after the program goes on by itself, with the daemon killed in between."""
    _hold_open(add_adapter(world, "keeper"))
    world.start_daemon()
    for seed in range(RUNS):
        _Run(world, Random(f"{holds} {seed}"), f"{world.folder}/run-{seed}", holds=holds).play()  # noqa: S311 - the same order again


class _Run:
    """One project in which a program goes on by itself, and terminals want its conversation."""

    def __init__(self, world: WorkingWorld, random: Random, cwd: str, *, holds: bool) -> None:
        os.makedirs(cwd)
        self.world = world
        self.random = random
        self.cwd = cwd
        self.agent = "keeper" if holds else "demo"
        self.program = Program(
            world, cwd, agent=self.agent, holds=holds, continues_s=random.uniform(0.2, 1.5)
        )
        self.outcomes: list[str] = []

    def play(self) -> None:
        """Nobody is beside the program at any look, and one of them is there in the end."""
        if self.random.random() < 0.2:
            self.program.end()
        clients = [
            threading.Thread(target=self._ask, args=(self.random.uniform(0, 1.5), self.random.random() < 0.5))
            for _ in range(self.random.randint(1, 3))
        ]
        for client in clients:
            client.start()
        kills_at = time.monotonic() + self.random.uniform(0.2, 1.5) if self.random.random() < 0.4 else None
        while any(client.is_alive() for client in clients):
            self._check()
            if kills_at is not None and time.monotonic() > kills_at:
                kills_at = None
                self.world.restart()
        for client in clients:
            client.join()
        self._ask(0, is_forced=True)
        wait_until(self._has_one_owner, f"one owner after {self.outcomes}")
        self._stop()

    def _ask(self, after_s: float, is_forced: bool) -> None:  # noqa: FBT001 - a thread's argument
        time.sleep(after_s)
        fields = {"from": self.agent, "cwd": self.cwd, "yes": is_forced}
        try:
            self.world.open("understudy", **fields)
        except RelayError as error:
            self.outcomes.append(error.sentence)
        else:
            self.outcomes.append("taken")

    def _check(self) -> None:
        # In this order: a program that lives now lived when the others were looked for.
        legs = find_legs(self.world, self.cwd)
        assert not (legs and self.program.lives), f"{legs} beside {self.program.process.pid}: {self.outcomes}"
        assert len(legs) <= 1, f"two of relay's agents: {self.outcomes}"

    def _has_one_owner(self) -> bool:
        self._check()
        return len(find_legs(self.world, self.cwd)) == 1

    def _stop(self) -> None:
        for name in os.listdir(f"{self.cwd}/.agent-relay/sessions"):
            try:
                self.world.ask("session.stop", session=name)
            except RelayError:
                continue
        wait_until(lambda: not find_legs(self.world, self.cwd), "nobody is left")
        self.program.end()


def test_what_agents_keep_themselves_is_listed_for_a_start_by_age(
    world: WorkingWorld, program: Program
) -> None:
    """Who starts an agent is asked about work of the same day only, and not if their own words choose one."""
    del program
    asked: dict[str, object] = {"agent": "claude", "cwd": world.project, "env": world.environ}
    answer = world.ask("session.natives", **asked)
    (row,) = answer["sessions"]
    assert (row["agent"], row["title"], answer["unread"]) == ("demo", "paint the shed", [])
    assert world.ask("session.natives", **asked, within_s=60)["sessions"] == [row]
    os.utime(row["path"], (0, time.time() - 90))
    assert world.ask("session.natives", **asked, within_s=60)["sessions"] == []
    assert len(world.ask("session.natives", **asked)["sessions"]) == 1
    assert world.ask("session.natives", **asked, args=["--resume", "x"])["sessions"] == []
