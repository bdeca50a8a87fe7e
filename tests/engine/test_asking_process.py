"""Who asks is found out from the asking process, and nothing waits for it for ever."""

import asyncio
import os
import pwd
import threading

import pytest

from agent_relay.domain.protocol.operations import Peer
from agent_relay.domain.values import Asker
from agent_relay.engine.sessions.asking_process import find_tool_user
from tests.support.relay_world import wait_until

NOBODY_HERE = 987_654


def ask(uid: int) -> Asker:
    """Who is recorded; every thread that was used has to end with the loop."""
    return asyncio.run(find_tool_user(Peer(os.getpid(), uid)))


@pytest.mark.size("test")
@pytest.mark.timeout(120)
def test_a_directory_that_does_not_answer_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Login names may be kept on the network; a handoff must not wait for it, and the number is true."""
    answers = threading.Event()

    def look_up(uid: int) -> pwd.struct_passwd:
        answers.wait(60)
        return pwd.struct_passwd(("dan", "x", uid, uid, "", "/", "/bin/sh"))

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    assert ask(NOBODY_HERE) == Asker(str(NOBODY_HERE), "mcp")
    assert ask(NOBODY_HERE) == Asker(str(NOBODY_HERE), "mcp")
    answers.set()
    wait_until(lambda: ask(NOBODY_HERE) == Asker("dan", "mcp"), "the name that came later is used")


def test_a_user_without_a_name_is_told_by_number() -> None:
    """As in a container."""
    assert ask(NOBODY_HERE + 1) == Asker(str(NOBODY_HERE + 1), "mcp")
