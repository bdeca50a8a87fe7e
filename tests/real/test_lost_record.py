"""What was said before an agent's record was deleted reaches the successor: checkpoints kept it."""

import glob
import os
from functools import partial

import pytest

from agent_relay.domain.events.session import CheckpointMade
from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_work import read_all_events, type_line, wait_heard, wait_prompt, wait_taken_over

RECORDS = {
    "claude": ".claude/projects/*/*.jsonl",
    "codex": ".codex/sessions/*/*/*/rollout-*.jsonl",
    "gemini": ".gemini/tmp/*/chats/session-*.jsonl",
    "opencode": ".local/share/opencode/opencode*.db*",
}
TURNS = (
    ("We plant marigolds only, never tulips.", "Marigolds it is, noted."),
    ("The bed is four metres long.", "Then forty seedlings are enough."),
)


@pytest.mark.parametrize("agent", RECORDS)
def test_a_record_deleted_after_two_turns_costs_no_word(world: World, agent: str) -> None:
    """Prompts and answers of both turns are in the packet, which says where they are from."""
    successor = "claude" if agent == "codex" else "codex"
    real_seeds.free_hands(world.home)
    world.play(agent, *(say(answer) for _, answer in TURNS))
    terminal = world.open(world.relay(agent))
    wait_prompt(terminal, agent)
    for number, (prompt, answer) in enumerate(TURNS, 1):
        type_line(terminal, prompt)
        terminal.wait_for(answer)
        terminal.wait_until(partial(has_turn, world, number, answer), f"checkpoint {number}")
    found = glob.glob(f"{world.home}/{RECORDS[agent]}")
    assert found
    for path in found:
        os.unlink(path)
    world.play(successor, say("I pick up where it stopped."))
    second = world.open(world.relay(successor))
    heard = wait_heard(world, second, successor)
    wait_taken_over(world, second, successor)
    assert all(words in heard for turn in TURNS for words in turn)
    # One of them writes all it knows into a new file when it goes on.
    assert "is from relay's checkpoints" in heard or glob.glob(f"{world.home}/{RECORDS[agent]}")


def has_turn(world: World, number: int, answer: str) -> bool:
    """Whether the newest checkpoint knows so many turns of the conversation, the last one with its answer."""
    made = [event.body for event in read_all_events(world) if isinstance(event.body, CheckpointMade)]
    return bool(made) and made[-1].turns >= number and answer in made[-1].answer
