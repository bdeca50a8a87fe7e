from tests.support import real_seeds
from tests.support.provider.steps import Step, say
from tests.support.real import World
from tests.support.real_work import (
    find_daemon,
    kill_daemon,
    order,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
)

TASK = "Write a page about marigolds."


def test_a_limit_met_after_the_daemon_was_killed_is_acted_on_by_the_next(world: World) -> None:
    """The agent works on without a daemon; what it met meanwhile must not wait for somebody to look."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex")
    world.play("claude", Step(error="claude-limit", hang_s=3, times=-1))
    world.play("codex", say("I pick up where it stopped."))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    wait_heard(world, terminal, "claude")
    before = find_daemon(world)
    kill_daemon(world)
    heard = wait_heard(world, terminal, "codex")
    wait_taken_over(world, terminal, "codex")
    assert TASK in heard
    assert find_daemon(world) not in (0, before)
