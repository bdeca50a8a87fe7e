import pytest

from agent_relay.domain.state import State
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_work import (
    distrust,
    order,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)

TASK = "Write a page about marigolds."
HALF = "half a line that nobody sent"


@pytest.mark.parametrize(("first", "second"), [("codex", "claude"), ("claude", "codex"), ("codex", "gemini")])
def test_nothing_is_typed_into_a_half_line_or_a_dialog(world: World, first: str, second: str) -> None:
    """A return sent into either would do what nobody decided: send a thought, or trust a folder."""
    order(world, first, second)
    distrust(world, second)
    world.play(first, say("The first answer."))
    world.play(second, say("I pick up where it stopped."))
    terminal = world.open(world.relay(first))
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    terminal.wait_for("The first answer")
    wait_work(world, terminal, lambda found: found.state is State.READY, "the turn's end")
    terminal.send(HALF)
    terminal.wait_for(HALF)
    done = world.run(world.relay(second, "--json"))
    assert done.returncode == 0, done.stderr
    terminal.wait_until(
        lambda: read_work(world).agent == second and "trust" in terminal.screen.lower(), "the dialog"
    )
    terminal.wait_quiet(3.0)
    asked = terminal.screen
    assert "trust" in asked.lower()
    assert world.requests(second) == []
    assert "handoff-context" not in asked
    terminal.send("\r")
    heard = wait_heard(world, terminal, second)
    wait_taken_over(world, terminal, second)
    assert TASK in heard
    assert len(world.requests(second)) == 1
    assert [row for row in world.requests(first) if HALF in row["text"]] == []
