import pytest

from agent_relay.domain.events.session import ConsentUsed
from agent_relay.domain.state import State
from agent_relay.system.disk.folders import get_folders
from tests.support import real_seeds
from tests.support.provider.steps import call, refuse, say, shell
from tests.support.real import World
from tests.support.real_work import (
    kill_daemon,
    order,
    read_all_events,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
BEFORE = "I keep unittest, since the project has no other runner: heliotrope."
SINCE = "I left the signature alone, since callers pass two numbers: marigold."
RESET_S = 45
PACKET = "# Handoff: "


@pytest.mark.parametrize(("first", "second"), [("claude", "codex"), ("codex", "claude")])
def test_an_agent_returns_at_its_reset_into_its_own_conversation_with_the_delta_only(
    world: World, first: str, second: str
) -> None:
    """Once, by itself, although the daemon was killed before the reset; it is told what it does not know."""
    real_seeds.free_hands(world.home)
    order(world, first, second, only=True)
    with open(f"{get_folders(world.env()).config}/config.toml", "a", encoding="utf-8") as file:
        file.write('return = "auto"\nreset_grace_s = 5\n')
    limit = refuse(f"{first}-limit", reset_s=RESET_S, times=1)
    world.play(first, call(shell(first, "git diff --stat"), text=BEFORE), limit, say("I am back."))
    world.play(second, say(SINCE))
    terminal = world.open(world.relay(first))
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    assert BEFORE in wait_heard(world, terminal, second)
    wait_taken_over(world, terminal, second)
    asked = len(world.requests(first))
    kill_daemon(world)
    heard = wait_heard(world, terminal, first, asked + 1)
    terminal.wait_for("I am back")
    wait_taken_over(world, terminal, first)
    session = wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
    assert [leg.agent for leg in session.legs] == [first, second, first]
    assert session.legs[2].native_id == session.legs[0].native_id
    assert session.legs[2].resumes
    assert session.done[-1].why == f"{first} is back"
    used = [event.body for event in read_all_events(world) if isinstance(event.body, ConsentUsed)]
    assert [(one.agent, one.consent) for one in used] == [(first, "return")]
    assert len(world.requests(first)) == asked + 1
    history, mark, told = heard.rpartition(PACKET)
    assert mark
    assert BEFORE in history
    assert BEFORE not in told
    assert "git diff --stat" not in told
    assert SINCE in told
