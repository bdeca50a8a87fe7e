"""The user's words reach the successor although the predecessor's own record of them is gone."""

import glob

import pytest

from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_work import type_line, wait_heard, wait_prompt, wait_taken_over

TASK = "Write a page about marigolds."
UNHEARD_OF = '{"kind":"turn","of":"a version nobody here has seen"}\n'


@pytest.mark.parametrize("left", ["", UNHEARD_OF * 3], ids=("cleared", "changed"))
def test_a_prompt_outlives_the_record_of_it(world: World, left: str) -> None:
    """Hooks and the screen told of it; the packet says what it lacks."""
    real_seeds.free_hands(world.home)
    world.play("claude", say("The first answer."))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    terminal.wait_for("The first answer")
    terminal.wait_quiet()
    for path in glob.glob(f"{world.home}/.claude/projects/*/*.jsonl"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(left)
    world.play("codex", say("I pick up where it stopped."))
    second = world.open(world.relay("codex"))
    heard = wait_heard(world, second, "codex")
    wait_taken_over(world, second, "codex")
    assert TASK in heard
    assert "missing here" in heard
    assert ("a version nobody here has seen" in heard) == bool(left)
