"""A daemon that is killed in a chat: the next one goes on, and nobody is asked or told twice."""

import os
import signal

import pytest

from agent_relay.domain.events.work import ChatBegun
from agent_relay.session.turns.chat import fold_chat
from tests.support.asked import are_over, kill_at, list_asked
from tests.support.chats import AGREES, SLOW, chat, chat_world, start_chat
from tests.support.relay_world import RelayWorld, is_stopped, wait_until
from tests.support.runs import find_agents, find_sessions, wait_begun
from tests.support.sizes import sized

FIRST = {**SLOW, "when": "in the user's words"}
AGREED = "It is fine.\n\nAGREED\n"
SAID = f"## demo\n\nI begin.\nI end.\n\n## understudy\n\n{AGREED}\n## demo\n\n{AGREED}"
POINTS = ("after turn.ended", "after SpawnLeg")


def read_messages(world: RelayWorld, session: str) -> list[tuple[str, str]]:
    """Who said what in a chat; nobody's name is the user's."""
    talked = fold_chat(world.events(session))
    assert talked is not None
    return [(one.speaker, one.text) for one in talked.messages]


@pytest.mark.parametrize("point", sized(POINTS, ["after turn.ended"]))
def test_a_chat_whose_daemon_is_killed_between_two_turns_goes_on(point: str) -> None:
    """From the end of the first turn to the second one at work."""
    with chat_world([FIRST, AGREES], [AGREES]) as world:
        process = start_chat(world, "demo", "understudy", "Paint it")
        session = wait_begun(world)
        # It would start a daemon of its own meanwhile.
        os.kill(process.pid, signal.SIGSTOP)
        world.kill_daemons()
        world.start_daemon(pause_at=point)
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: is_stopped(world.daemons[-1].pid), f"the daemon froze {point}", limit_s=60)
        world.kill_daemons()
        out, err = process.communicate(timeout=180)
        assert (process.returncode, out.decode()) == (0, SAID), err.decode()
        assert read_messages(world, session) == [
            ("demo", "I begin.\n\nI end."),
            ("understudy", "It is fine.\n\nAGREED"),
            ("demo", "It is fine.\n\nAGREED"),
        ]
        wait_until(lambda: find_agents(world) == [], "no agent")


@pytest.mark.parametrize("point", ["before chat.begun", "after leg.started"])
def test_a_chat_whose_daemon_is_killed_at_its_beginning_begins_once(point: str) -> None:
    """Whoever typed it got no answer: begun twice, two chats would work in one folder, and cost twice."""
    with chat_world([FIRST, AGREES], [AGREES]) as world:
        frozen = world.start_daemon(pause_at=point)
        process = start_chat(world, "demo", "understudy", "Paint it")
        kill_at(frozen.pid, point)
        out, err = process.communicate(timeout=180)
        assert (process.returncode, out.decode().count("## demo"), out.decode().count("## understudy")) == (
            0, 2, 1,
        ), err.decode()  # fmt: skip
        wait_until(lambda: are_over(world), "nothing is at work")
        begun = [
            session
            for session in find_sessions(world)
            for event in world.events(session)
            if isinstance(event.body, ChatBegun)
        ]
        assert len(begun) == 1
        speakers = [speaker for speaker, _ in read_messages(world, begun[0])]
        assert speakers == ["demo", "understudy", "demo"]
        assert len(list_asked(world)) == 3
        wait_until(lambda: find_agents(world) == [], "no agent")


def test_a_chat_gone_on_with_while_its_daemon_is_killed_goes_on_once() -> None:
    """What the user says to them is said once."""
    with chat_world([AGREES], [AGREES]) as world:
        assert chat(world, "demo", "understudy", "Paint it")[0] == 0
        (session,) = find_sessions(world)
        world.kill_daemons()
        frozen = world.start_daemon(pause_at="after turn.begun")
        process = start_chat(world, "--continue", session, "And the door")
        kill_at(frozen.pid, "after turn.begun")
        _, err = process.communicate(timeout=180)
        assert process.returncode == 0, err.decode()
        assert [text for speaker, text in read_messages(world, session) if not speaker] == ["And the door"]
        assert len(list_asked(world)) == 4
