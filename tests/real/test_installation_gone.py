"""The real agents go on when relay's installation is moved away under them."""

from tests.support import real_seeds
from tests.support.installations import Installation
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_work import type_line, wait_heard, wait_prompt

TASK = "Write a page about marigolds."


def test_a_prompt_goes_through_when_the_hooks_installation_is_gone(world: World) -> None:
    """Its hooks stand at paths that an upgrade, a move or an uninstallation takes away in mid-session."""
    installed = Installation(f"{world.root}/installed")
    real_seeds.free_hands(world.home)
    world.play("claude", say("The page is written."), say("And a second one."))
    terminal = world.open(installed.command("claude"), env=world.env() | installed.environ)
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    wait_heard(world, terminal, "claude")
    terminal.wait_for("The page is written")
    installed.move_away()
    type_line(terminal, "And one about tulips, please.")
    assert "tulips" in wait_heard(world, terminal, "claude", 2)
    terminal.wait_for("And a second one")
    assert "hook error" not in terminal.screen


def test_a_prompt_that_a_hook_blocked_is_no_turn(world: World) -> None:
    """A user's own hook may refuse; the agent calls that a success and ends with 0."""
    blocks = {"type": "command", "command": "echo not on Mondays >&2; exit 2"}
    hooks = {"UserPromptSubmit": [{"hooks": [blocks]}]}
    real_seeds.write_json(f"{world.home}/.claude/settings.json", {"hooks": hooks})
    done = world.run(world.relay("run", "claude", TASK))
    assert (done.returncode, world.requests("claude")) == (1, []), done.stderr
    assert "claude ended its turn without doing anything: UserPromptSubmit operation blocked" in done.stderr
    assert "not on Mondays" in done.stderr
