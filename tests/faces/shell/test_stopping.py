"""A turn that is stopped at each moment of its beginning, beside a daemon that answers when told to."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine

from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.errors import DaemonUnreachableError
from agent_relay.faces.shell._agent_switch import PreferredReturn
from agent_relay.faces.shell._conversation import Conversation
from agent_relay.faces.shell._message_queue import MessageQueue
from agent_relay.faces.shell._terminal import Scrollback
from agent_relay.faces.shell._turns import Turns
from tests.faces.render.views import Written

LIMIT_S = 120
TURN = {"type": "turn", "session": "S", "folder": "/nowhere", "agent": "ann"}
STOPPED = {"type": "end", "session": "S", "agent": "ann", "outcome": "stopped", "why": "the user said so"}


class Daemon:
    """Begins a turn once `begins` is set, and ends it once it was told to."""

    def __init__(self, *, deaf: int = 0) -> None:
        self.asked: list[str] = []
        self.begins = threading.Event()
        self.reached = threading.Event()
        self.stopped = threading.Event()
        self._deaf = deaf
        self._is_told = False

    def request(self, op: str, /, *, limit_s: float = 0.0, **fields: object) -> dict[str, object]:
        """The answer, of the turn as it is."""
        del limit_s, fields
        self.asked.append(op)
        if op == "run.begin":
            self.reached.set()
            assert self.begins.wait(LIMIT_S)
            return {"session": "S", "told": {}}
        if op == "run.follow" and not self._is_told:
            self._is_told = True
            return {"events": [TURN], "told": {}, "over": False}
        if op == "run.follow":
            assert self.stopped.wait(LIMIT_S)
            return {"events": [STOPPED], "told": {}, "over": True}
        if op == "session.stop":
            if self._deaf:
                self._deaf -= 1
                raise DaemonUnreachableError("the daemon went away")
            self.stopped.set()
        return {}

    def close(self) -> None:
        """Nothing is held."""


async def _work(
    daemon: Daemon, queue: os.PathLike[str], play: Callable[[Turns], Coroutine[None, None, None]]
) -> tuple[Turns, str]:
    """The turns after `play` was played, against `daemon`, and what the shell itself had to say."""
    changed = asyncio.Event()
    target, source = os.pipe()
    talk = Conversation("/", agent="ann")
    turns = Turns(
        talk,
        MessageQueue(f"{queue}/queue.json", changed.set),
        connect=lambda: daemon,
        view=Written().view,
        scrollback=Scrollback(asyncio.get_running_loop(), source),
        changed=changed.set,
        prepare=lambda _tell, _cancelled: None,
        preferred=PreferredReturn(talk, UserConfig, f"{queue}/ledger.json"),
    )
    worker = asyncio.create_task(turns.run())
    try:
        await asyncio.wait_for(play(turns), LIMIT_S)
    finally:
        worker.cancel()
        os.close(source)
        with os.fdopen(target, encoding="utf-8", newline="") as painted:
            said = painted.read()
    return turns, said


async def _until(holds: Callable[[], object]) -> None:
    for _ in range(LIMIT_S * 1000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come")


def test_a_turn_that_is_about_to_begin_waits_instead(tmp_path: os.PathLike[str]) -> None:
    """Ctrl-C directly behind Enter: nobody has been asked anything yet."""
    daemon = Daemon()

    async def play(turns: Turns) -> None:
        turns.send("regretted")
        await turns.stop()
        await asyncio.sleep(0)

    turns, _ = asyncio.run(_work(daemon, tmp_path, play))
    assert (daemon.asked, turns.queue_state.why) == ([], "stopped in time")
    assert turns.list_waiting() == ["regretted"]


def test_a_turn_that_is_being_begun_is_stopped_once_it_has(tmp_path: os.PathLike[str]) -> None:
    """Starting an agent takes seconds, in which there is nothing yet to be stopped."""
    daemon = Daemon()

    async def play(turns: Turns) -> None:
        turns.send("regretted")
        await _until(daemon.reached.is_set)
        await turns.stop()
        daemon.begins.set()
        await _until(lambda: not turns.is_working)

    turns, _ = asyncio.run(_work(daemon, tmp_path, play))
    assert "session.stop" in daemon.asked
    assert turns.list_waiting() == []


def test_a_stop_that_did_not_reach_the_daemon_is_told_and_can_be_tried_again(
    tmp_path: os.PathLike[str],
) -> None:
    """A daemon that dies at that moment must not make the turn unstoppable."""
    daemon = Daemon(deaf=1)
    daemon.begins.set()

    async def play(turns: Turns) -> None:
        turns.send("regretted")
        # It is asked for more once the shell was told that the turn has begun, which the loop does first.
        await _until(lambda: daemon.asked.count("run.follow") == 2)
        await asyncio.sleep(0)
        await turns.stop()
        assert turns.is_working
        await turns.stop()
        await _until(lambda: not turns.is_working)

    _, painted = asyncio.run(_work(daemon, tmp_path, play))
    assert daemon.asked.count("session.stop") == 2
    assert painted == "agent-relay: the daemon went away\r\n"
