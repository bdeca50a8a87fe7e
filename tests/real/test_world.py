import pytest

from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_work import type_line

STARTS = {
    "claude": (["claude"], "shortcuts"),
    "codex": (["codex", "--no-daemon"], "Ask Codex"),
    "gemini": (["gemini"], "Type your message"),
    "opencode": (["opencode"], "Ask anything"),
}


@pytest.mark.parametrize("agent", sorted(STARTS))
def test_each_agent_talks_to_the_scripted_provider_and_to_nobody_else(world: World, agent: str) -> None:
    """Every other real test stands on this: a seeded home, a prompt without dialogs, our answer on screen."""
    argv, prompt = STARTS[agent]
    world.play(agent, say("The answer of the script."))
    terminal = world.open(argv)
    terminal.wait_for(prompt)
    terminal.wait_quiet()
    type_line(terminal, "a question")
    terminal.wait_for("The answer of the script.")
    requests = world.requests(agent)
    assert len(requests) == 1
    assert "a question" in requests[0]["text"]
