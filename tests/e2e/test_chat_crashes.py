"""A daemon that is killed at any line of a chat: the next one goes on, and nobody is asked or told twice."""

import os
import signal

import pytest

from agent_relay.logic.chat.fold import fold_chat
from tests.support.chats import AGREES, SLOW, chat_world, start_chat
from tests.support.relay_world import is_stopped, wait_until
from tests.support.runs import find_agents, wait_begun

FIRST = {**SLOW, "when": "in the user's words"}
LINES = ("turn.ended", "leg.ended", "session.ended", "turn.begun", "leg.starting", "leg.started")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("line", LINES)
def test_a_chat_whose_daemon_is_killed_at_any_line_goes_on(line: str, when: str) -> None:
    """From the end of the first turn to the second one at work."""
    with chat_world([FIRST, AGREES], [AGREES]) as world:
        process = start_chat(world, "demo", "understudy", "Paint it")
        session = wait_begun(world)
        # It would start a daemon of its own meanwhile.
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(int(str(world.ask("daemon.status")["pid"])), signal.SIGKILL)
        world.start_daemon(pause_at=f"{when} {line}")
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: is_stopped(world.daemons[-1].pid), f"the daemon froze {when} {line}", limit_s=60)
        world.kill_daemons()
        out, err = process.communicate(timeout=180)
        assert (process.returncode, out.decode()) == (
            0,
            (
                "## demo\n\nI begin.\nI end.\n\n## understudy\n\nIt is fine.\n\nAGREED\n\n"
                "## demo\n\nIt is fine.\n\nAGREED\n"
            ),
        ), err.decode()
        talked = fold_chat(world.events(session))
        assert talked is not None
        assert [(one.speaker, one.text) for one in talked.messages] == [
            ("demo", "I begin.\n\nI end."),
            ("understudy", "It is fine.\n\nAGREED"),
            ("demo", "It is fine.\n\nAGREED"),
        ]
        wait_until(lambda: find_agents(world) == [], "no agent")
