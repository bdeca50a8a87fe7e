"""The real agents, started without relay, with our hooks beside their user's own."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.support import real_seeds
from tests.support.installations import Installation
from tests.support.provider.steps import refuse, say
from tests.support.real import World
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    LIMITS,
    find_daemon,
    order,
    type_line,
    wait_heard,
    wait_no_agents,
    wait_prompt,
)
from tests.support.sizes import sized

TASK = "Write a page about marigolds."
OWN = "cat >> {path}; echo >> {path}"
FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}
EVENTS = {
    "claude": ("StopFailure", "Stop"),
    "codex": ("SessionStart", "Stop"),
    "gemini": ("SessionStart", "AfterAgent"),
}
WORDS = {"claude": [], "codex": ["--no-daemon"], "gemini": []}
TOLD = rb"\x1b\]9;project: (?P<said>[^\x1b]*)\x1b"


def write_own_hooks(world: World, agent: str) -> bytes:
    """Hooks of the user's own at the same event and another, in a layout of their own; the file's bytes."""
    real_seeds.free_hands(world.home)
    path = Path(world.home, FILES[agent])
    known = json.loads(path.read_bytes()) if path.exists() else {}
    command = {"type": "command", "command": OWN.format(path=f"{world.root}/own.jsonl")}
    known["hooks"] = {event: [{"hooks": [command]}] for event in EVENTS[agent]}
    path.write_text(json.dumps(known, indent=3).replace('"hooks": {', '"hooks" : {', 1) + "\n\n", "utf-8")
    return path.read_bytes()


def count_own(world: World) -> int:
    """How often the user's own hooks were called."""
    try:
        with open(f"{world.root}/own.jsonl", encoding="utf-8") as file:
            return sum(line.startswith("{") for line in file)
    except FileNotFoundError:
        return 0


def run(world: World, *words: str) -> str:
    """What a command of ours says, which succeeds."""
    done = world.run(world.relay(*words))
    assert done.returncode == 0, done.stderr
    return done.stdout


def open_plain(world: World, agent: str) -> Terminal:
    """The agent as its user starts it, in a terminal that takes notifications; its dialogs are answered."""
    terminal = world.open([agent, *WORDS[agent]], env=world.env() | {"TERM_PROGRAM": "iTerm.app"})
    if agent == "codex":
        terminal.wait_for("Hooks need review")
        terminal.wait_quiet(0.5)
        terminal.press_until("\x1b[B", r"\W 2. Trust all")
        terminal.send("\r")
    wait_prompt(terminal, agent)
    return terminal


def wait_told(terminal: Terminal) -> str:
    """What the terminal's notification says."""
    terminal.wait_until(lambda: re.search(TOLD, bytes(terminal.raw)) is not None, "a notification")
    found = re.search(TOLD, bytes(terminal.raw))
    assert found is not None
    return found["said"].decode()


@pytest.mark.parametrize("agent", sized(["claude", "codex", "gemini"], ["codex"]))
def test_a_limit_is_told_and_nothing_else_and_uninstall_leaves_the_file_as_it_was(
    world: World, agent: str
) -> None:
    """A success and a decoy before it are silent; the daemon was down and is started by the hook."""
    before = write_own_hooks(world, agent)
    successor = "codex" if agent == "claude" else "claude"
    order(world, agent, successor, only=True)
    run(world, "hooks", "install", agent)
    decoy = (
        "You've hit your session limit · resets 9pm (UTC). ■ You’ve hit your usage limit. Try again later."  # noqa: RUF001 - their apostrophe
    )
    world.play(agent, say("The page is written."), say(decoy), LIMITS[agent])
    terminal = open_plain(world, agent)
    type_line(terminal, TASK)
    terminal.wait_for("The page is written")
    terminal.wait_quiet()
    type_line(terminal, "And one about tulips.")
    terminal.wait_for("You've hit your session limit")
    terminal.wait_quiet(2)
    assert re.search(TOLD, bytes(terminal.raw)) is None
    assert json.loads(run(world, "limits", "--json"))["limits"] == []
    type_line(terminal, "And one about roses.")
    wait_heard(world, terminal, agent, 3)
    if agent == "gemini":
        terminal.wait_for("Usage limit reached")
        terminal.press_until("\x1b[B", "● 2. Stop")
        # A key right after another one is not always taken.
        terminal.press_until("\r", r"(?s)\A(?!.*● 2\. Stop)")
    said = wait_told(terminal)
    assert said.startswith(f"{agent} hit ")
    assert said.endswith(f"agent-relay {successor}.")
    assert [one["agent"] for one in json.loads(run(world, "limits", "--json"))["limits"]] == [agent]
    terminal.wait_quiet(2)
    assert len(re.findall(TOLD, bytes(terminal.raw))) == 1
    assert "hook error" not in terminal.screen
    terminal.kill()
    wait_no_agents(world)
    assert count_own(world) > 1
    run(world, "hooks", "uninstall")
    assert Path(world.home, FILES[agent]).read_bytes() == before


def test_a_transient_refusal_is_not_told(world: World) -> None:
    """The same event and the same error as a limit's; only its words differ."""
    write_own_hooks(world, "claude")
    run(world, "hooks", "install", "claude")
    world.play("claude", refuse("claude-transient"), LIMITS["claude"])
    terminal = open_plain(world, "claude")
    type_line(terminal, TASK)
    terminal.wait_for("not your usage limit")
    terminal.wait_quiet(3)
    assert re.search(TOLD, bytes(terminal.raw)) is None
    assert json.loads(run(world, "limits", "--json"))["limits"] == []


def test_the_offer_adopts_the_conversation_once_its_program_has_ended(world: World) -> None:
    """Never two owners: the plain program is ended first, which the user is asked for."""
    write_own_hooks(world, "claude")
    order(world, "claude", "codex", only=True)
    run(world, "hooks", "install", "claude")
    world.play("claude", LIMITS["claude"])
    world.play("codex", say("I pick up where it stopped."))
    plain = open_plain(world, "claude")
    type_line(plain, TASK)
    assert wait_told(plain).endswith("agent-relay codex.")
    relayed = world.open(world.relay("codex"))
    relayed.wait_for("claude has a session of its own here")
    relayed.send("y\r")
    relayed.wait_for("still|runs|--yes")
    assert plain.is_alive()
    assert world.requests("codex") == []
    relayed.wait_exit()
    again = world.open(world.relay("codex", "--from", "claude", "--yes"))
    assert TASK in wait_heard(world, again, "codex")
    plain.wait_exit()


def test_inside_an_agent_that_relay_started_the_hooks_are_silent(world: World) -> None:
    """Its leg has hooks of its own; what happens there is told once."""
    write_own_hooks(world, "claude")
    order(world, "claude", "codex")
    run(world, "hooks", "install", "claude")
    world.play("claude", LIMITS["claude"])
    world.play("codex", say("I pick up where it stopped."))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    wait_heard(world, terminal, "codex")
    assert os.listdir(f"{world.env()['AGENT_RELAY_HOME']}/state/hooks/claude") == []


@pytest.mark.parametrize("is_stopped", [False, True])
def test_with_the_installation_gone_or_the_daemon_stopped_the_agent_works_on(
    world: World,
    is_stopped: bool,  # noqa: FBT001 - which of the two
) -> None:
    """Its own notice of the limit is all there is, and no word of a hook."""
    installed = Installation(f"{world.root}/installed")
    write_own_hooks(world, "claude")
    environ = world.env() | installed.environ
    with_ours = world.open(installed.command("hooks", "install", "claude", "--yes"), env=environ)
    assert with_ours.wait_exit() == 0
    if is_stopped:
        run(world, "daemon", "start")
        run(world, "daemon", "stop")
    else:
        installed.move_away()
    world.play("claude", LIMITS["claude"])
    terminal = open_plain(world, "claude")
    type_line(terminal, TASK)
    terminal.wait_for("hit your session limit")
    terminal.wait_quiet()
    terminal.send("\x1b")
    terminal.wait_quiet()
    world.play("claude", say("The page is written."))
    type_line(terminal, "And one about tulips.")
    terminal.wait_for("The page is written")
    assert "hook error" not in terminal.screen
    assert find_daemon(world) == 0
    if not is_stopped:
        found = json.loads(world.run(world.relay("doctor", "--json")).stdout)
        assert any("point to an installation that is gone" in one["what"] for one in found["findings"])
        run(world, "hooks", "install", "claude", "--yes")
        assert json.loads(run(world, "hooks", "status", "--json"))["hooks"][0]["state"] == "installed"
