"""What the tries of docs/tried_by_hand.py have in common: a terminal with an agent, and what stands on it."""

import os
import re
import shlex

from tests.support import real_seeds
from tests.support.install_clis import get_clis_folder, get_path_folders
from tests.support.newest import install_version
from tests.support.real import World
from tests.support.real_terminal import Terminal
from tests.support.real_work import LIMITS, order, type_line, wait_prompt

SIZE = (24, 80)
TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."


def begin(
    world: World,
    first: str,
    *others: str,
    only: bool = False,
    newest: bool = False,
    task: str = "",
    extra: dict[str, str] | None = None,
) -> Terminal:
    """A terminal on which `first` is at its prompt, with these agents next in the order."""
    real_seeds.free_hands(world.home)
    order(world, first, *others, only=only)
    env = world.env() | (extra or {})
    if newest:
        env |= use_claude(world, "2.1.330")
        with open(f"{world.home}/.claude.json", encoding="utf-8") as file:
            known = file.read()
        with open(f"{world.home}/.claude.json", "w", encoding="utf-8") as file:
            file.write(known.replace("2.1.197", "2.1.330"))
    if not task:
        world.play(first, LIMITS[first])
    terminal = world.open(world.relay(first, *([task] if task else [])), env, size=SIZE)
    if not task:
        wait_prompt(terminal, first)
    return terminal


def use_claude(world: World, version: str) -> dict[str, str]:
    """An environment in which that version of Claude Code is found; `make newest` installs it."""
    program = install_version(get_clis_folder(dict(os.environ)), "claude", version)
    env = world.env()
    return env | {"PATH": f"{os.path.dirname(program)}:{env['PATH']}"}


def give_task(terminal: Terminal) -> None:
    """Type the task and Enter."""
    type_line(terminal, TASK)


def ask(terminal: Terminal, line: str) -> None:
    """Type `line` behind the relay key."""
    terminal.send("\x1d")
    terminal.wait_for("/use AGENT")
    terminal.send(f"{line}\r")


def take(world: World, terminal: Terminal) -> str:
    """What the terminal shows now."""
    return clean(world, "\n".join(row.rstrip() for row in terminal.rows).strip("\n"))


def run(world: World, *words: str, env: dict[str, str] | None = None) -> str:
    """What a command prints where it has no terminal."""
    done = world.run(world.relay(*words, env=env))
    said = (done.stdout + done.stderr).rstrip()
    return clean(world, f"$ agent-relay {shlex.join(words)}\n{said}\n[exit status {done.returncode}]")


def clean(world: World, text: str) -> str:
    """The text in a folder of nobody's."""
    root = world.root
    clis = get_clis_folder(dict(os.environ))
    text = re.sub(rf"{clis}/versions/[^/]*/node_modules/\.bin", "/home/ada/.local/bin", text)
    for folder in get_path_folders(clis):
        text = text.replace(folder, "/home/ada/.local/bin")
    return text.replace(root, "/home/ada/projects/ledger"[: len(root)].ljust(len(root), "-"))
