"""Writes `tried-by-hand.md` and `handoff-on-screen.md` from terminals in which the real agents ran.

python docs/tried_by_hand.py                 # both pages, from the screens that were kept
python docs/tried_by_hand.py record          # the screens, anew, from the real agents
python docs/tried_by_hand.py record typing   # one of the tries
"""

import json
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.support.hand_tries import ask, begin, clean, give_task, run, take, use_claude

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.real import World

HERE = os.path.dirname(os.path.abspath(__file__))
SCREENS = f"{HERE}/tried-by-hand.json"
GOES_ON = "I pick up where it stopped: add() must return a + b."
HEAD = """\
# {title}

<!-- Written by docs/tried_by_hand.py from real terminals; run that with the word record to take them anew -->

{about}
"""
TRIED = """\
What a person types and sees, tried with the real programs in a terminal of 80 columns and 24 rows. They talk
to a provider on this machine that answers with the real providers' limits: answers and resets are made up,
everything else is what you would see. Empty rows at the top and bottom are left out.
"""
SEEN = """\
Three moments of one task in one terminal of 80 columns and 24 rows. The agents are real; the provider that
answers them is a program on this machine, which says what it was told to say.
"""


MOMENTS = (
    (
        "Claude Code meets its limit",
        "From the limit on, the bottom line says who takes over from whom, why, and what is awaited.",
    ),
    (
        "Codex works",
        "The packet was its first prompt, and it says what it picks up; the bottom line is its own again.",
    ),
    (
        "Every agent rests",
        "Codex has hit its limit, too. The first reset counts down, and one key chooses what happens then.",
    ),
)
WATCHED = """\
## Every pair of agents

The same was played for all twelve ordered pairs of the four agents, in terminals of 80 columns and 24 rows
and of 120 and 40, with Claude Code 2.1.197, Codex 0.169.0, Gemini CLI 0.61.0 and opencode 1.18.33. The bottom
line was looked at from at most 78 ms after the handoff began until the successor worked. `make every`
plays each pair again, in one of the two sizes; this is what all of it showed on 2026-11-25:

| played | in | times | seen | each took |
|---|---|---|---|---|
| a limit, 12 pairs, both sizes | tmux | 24 | the bar in all 3,745 looks, 12 or more a second | 11-75 s |
| a limit, 12 pairs, both sizes | a bare terminal | 24 | the bar in all 3,053 looks, 20 or more | 7-34 s |
| all rest, 4 agents, both sizes | both | 16 | the first reset and what to do, in every look | 5-29 s |
| keys at twenty moments, 12 pairs | a bare terminal | 12 | once, in order, after the packet | 11-77 s |
| a question while keys wait, 3 agents | a bare terminal | 3 | answered by no key; they came later | 17-18 s |
"""
MOST_SCREENS = {"bar": 2}
"""Of these tries the other page shows more."""


@dataclass(frozen=True, slots=True)
class Try:
    """One thing that was tried: what was typed, and what to notice."""

    name: str
    title: str
    command: str
    notice: str


TRIES: list[Try] = []
PLAYS: dict[str, "Callable[[World], list[str]]"] = {}


def tried(
    name: str, title: str, command: str
) -> "Callable[[Callable[[World], list[str]]], Callable[[World], list[str]]]":
    """The function plays this try and returns what was on the screen; its docstring is what to notice."""

    def keep(play: "Callable[[World], list[str]]") -> "Callable[[World], list[str]]":
        TRIES.append(Try(name, title, command, play.__doc__ or ""))
        PLAYS[name] = play
        return play

    return keep


@tried(
    "doctor",
    "The versions it was tried with",
    "`agent-relay doctor`",
)
def play_doctor(world: "World") -> list[str]:
    """Each agent is named with its version; what to do about a silent or a newer one is said."""
    return [run(world, "doctor", env=use_claude(world, "2.1.331"))]


@tried(
    "bar",
    "A limit, and the next agent",
    "`agent-relay claude`",
)
def play_bar(world: "World") -> list[str]:
    """The bottom line says who takes over, why, and what it is waiting for; it goes away when Codex works."""
    from tests.support.provider.steps import say
    from tests.support.real_work import LIMITS, type_line

    terminal = begin(world, "claude", "codex", only=True)
    world.play("codex", say(GOES_ON), LIMITS["codex"])
    give_task(terminal)
    terminal.wait_until(lambda: "claude → codex" in terminal.rows[-1], "the bar")
    terminal.wait_for("hit your session limit|codex is starting")
    limit = take(world, terminal)
    terminal.wait_for(GOES_ON[:28])
    terminal.wait_until(lambda: "claude → codex" not in terminal.rows[-1], "the bar to be gone")
    terminal.wait_quiet()
    works = take(world, terminal)
    type_line(terminal, "Now add a test for negative numbers.")
    terminal.wait_for("l leave")
    terminal.wait_quiet(0.3, limit_s=3)
    return [limit, works, take(world, terminal)]


@tried(
    "typing",
    "Typing while the agents change",
    "`agent-relay claude`; while the bar is there, `and add a test`, Enter, and `then`",
)
def play_typing(world: "World") -> list[str]:
    """What was typed meanwhile is sent after the packet; text without Enter waits in Codex's input line."""
    from tests.support.provider.steps import say

    terminal = begin(world, "claude", "codex")
    world.play("codex", say(GOES_ON), say("A test for negative numbers comes next."))
    give_task(terminal)
    terminal.wait_until(lambda: "claude → codex" in terminal.rows[-1], "the bar")
    terminal.send("and add a test\r")
    terminal.wait_for("codex is starting")
    terminal.send("then")
    below = take(world, terminal)
    terminal.wait_for("comes next")
    terminal.wait_for(r"(?m)^\S then")
    terminal.wait_quiet()
    return [below, take(world, terminal)]


@tried(
    "cancel",
    "Esc, while the bar is there",
    "`agent-relay claude`; while the bar is there, Esc",
)
def play_cancel(world: "World") -> list[str]:
    """The handoff is cancelled, its packet is kept, and the commands to go on or to switch back are named."""
    from tests.support.provider.steps import say

    terminal = begin(world, "claude", "codex")
    world.play("codex", say(GOES_ON))
    give_task(terminal)
    terminal.wait_until(lambda: "claude → codex" in terminal.rows[-1], "the bar")
    terminal.send("\x1b")
    terminal.wait_exit()
    return [take(world, terminal)]


@tried(
    "trust",
    "A successor that asks first",
    "`agent-relay claude`, and `agent-relay status` in another terminal",
)
def play_trust(world: "World") -> list[str]:
    """Codex asks whether to trust this folder: the bar says it needs an answer, status says asking."""
    from tests.support.provider.steps import say

    terminal = begin(world, "claude", "codex")
    config = f"{world.home}/.codex/config.toml"
    with open(config, encoding="utf-8") as file:
        lines = [line for line in file if "[projects" not in line and "trust_level" not in line]
    with open(config, "w", encoding="utf-8") as file:
        file.writelines(lines)
    world.play("codex", say(GOES_ON))
    give_task(terminal)
    terminal.wait_for("needs an answer")
    terminal.wait_quiet()
    return [take(world, terminal), run(world, "status")]


@tried(
    "resting",
    "Every agent rests",
    "`agent-relay claude`, where it is the only agent of the order; then w",
)
def play_resting(world: "World") -> list[str]:
    """The first reset is shown in your time zone, with a countdown, and one key chooses what happens then."""
    terminal = begin(world, "claude", only=True)
    give_task(terminal)
    terminal.wait_for("l leave")
    terminal.wait_quiet(0.3, limit_s=3)
    first = take(world, terminal)
    terminal.press_until("w", "w do not continue")
    return [first, take(world, terminal)]


@tried(
    "own",
    "Claude Code 2.1.330, which continues by itself at its reset",
    "`agent-relay claude`, where it is the only agent of the order; then v",
)
def play_own(world: "World") -> list[str]:
    """There is one decision about the reset, which relay's screen tells; v shows Claude's own screen."""
    terminal = begin(world, "claude", only=True, newest=True)
    give_task(terminal)
    terminal.wait_for("will continue by itself")
    terminal.wait_quiet(0.3, limit_s=3)
    first = take(world, terminal)
    terminal.press_until("v", "2.1.330|Usage limit")
    terminal.wait_quiet(1)
    return [first, take(world, terminal)]


@tried(
    "task",
    "A task on the command line, and its session later",
    '`agent-relay claude "fix the cents"`, /exit, `agent-relay sessions`, and `agent-relay`',
)
def play_task(world: "World") -> list[str]:
    """Sessions have the task's words as their title, and the shell offers the last one with Enter."""
    from tests.support.provider.steps import say

    terminal = begin(world, "claude", "codex", task="fix the cents")
    world.play("claude", say("The cents are rounded now."))
    terminal.wait_for("rounded now")
    terminal.wait_quiet()
    first = take(world, terminal)
    terminal.send("/exit")
    terminal.wait_typed("/exit")
    terminal.send("\r")
    terminal.wait_exit()
    listed = run(world, "sessions")
    shell = world.open(world.relay(), size=(24, 80))
    shell.wait_for("(?m)^>")
    shell.wait_quiet()
    offered = take(shell)
    shell.close()
    return [first, listed, offered]


@tried(
    "key",
    "The relay key: another agent, the log, and back",
    "`agent-relay claude`; Ctrl-] and `/use codex`; Ctrl-] and `/log`; Ctrl-] and `/undo-handoff`",
)
def play_key(world: "World") -> list[str]:
    """A handoff by hand has the same bar, the log has a line for it, and /undo-handoff switches back."""
    from tests.support.provider.steps import say

    terminal = begin(world, "claude", "codex")
    world.play("claude", say("I read calc.py: add() subtracts."), say("Back at it: add() returns a - b."))
    world.play("codex", say(GOES_ON))
    give_task(terminal)
    terminal.wait_for("add\\(\\) subtracts")
    terminal.wait_quiet()
    screens = []
    ask(terminal, "/use codex")
    terminal.wait_until(lambda: "claude → codex" in terminal.rows[-1], "the bar")
    screens.append(take(world, terminal))
    terminal.wait_for(GOES_ON[:28])
    terminal.wait_until(lambda: "claude → codex" not in terminal.rows[-1], "the bar to be gone")
    terminal.wait_quiet()
    ask(terminal, "/log")
    terminal.wait_for("claude|codex")
    terminal.wait_quiet(0.5, limit_s=3)
    screens.append(take(world, terminal))
    terminal.send("\x1b")
    terminal.wait_quiet(1)
    ask(terminal, "/undo-handoff")
    terminal.wait_until(lambda: "codex → claude" in terminal.rows[-1], "the way back")
    screens.append(take(world, terminal))
    terminal.wait_for("Back at it")
    return screens


@tried(
    "notify",
    "Notifications, in a terminal that shows them",
    '`agent-relay claude` in WezTerm, with `notify = ["bell", "osc"]` in `config.toml`',
)
def play_notify(world: "World") -> list[str]:
    """The terminal is sent a title and a line of text, with no word of the task."""
    from agent_relay.system.disk.folders import get_folders
    from tests.support.provider.steps import say

    config = get_folders(world.env()).config
    os.makedirs(config, exist_ok=True)
    with open(f"{config}/config.toml", "a", encoding="utf-8") as file:
        file.write('notify = ["bell", "osc"]\n')
    terminal = begin(world, "claude", "codex", extra={"TERM_PROGRAM": "WezTerm"})
    world.play("codex", say(GOES_ON))
    give_task(terminal)
    terminal.wait_for(GOES_ON[:28])
    terminal.wait_until(lambda: b"\x1b]777;" in terminal.raw, "the notification")
    found = re.findall(rb"\x1b\]777;[^\x07\x1b]*", bytes(terminal.raw))
    return ["\n".join(clean(world, f"ESC ]{one[2:].decode()}") for one in found)]


@tried(
    "headless",
    "Without a terminal, and without permission",
    "`agent-relay claude | cat`, and `agent-relay run` with a task that needs a tool nobody allowed",
)
def play_headless(world: "World") -> list[str]:
    """No screen goes into a pipe, the command for scripts is named, and refused tools are named."""
    from tests.support.provider.steps import call, say, shell

    world.play("claude", call(shell("claude", "touch made"), text="I make it."), say("I was not allowed to."))
    return [run(world, "claude"), run(world, "run", "claude", "make a file")]


def record(names: list[str]) -> None:
    """Play the tries anew and keep what was shown."""
    from tests.support.real import open_world

    for name, play in PLAYS.items():
        if names and name not in names:
            continue
        with open_world() as world:
            screens = play(world)
        kept = read_screens() | {name: screens}
        with open(SCREENS, "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=1, ensure_ascii=False, sort_keys=True)
            file.write("\n")


def read_screens() -> dict[str, list[str]]:
    """The screens that were kept."""
    try:
        with open(SCREENS, encoding="utf-8") as file:
            found: dict[str, list[str]] = json.load(file)
    except FileNotFoundError:
        return {}
    return found


def build_tried() -> str:
    """Return the page of everything that was tried."""
    screens, parts = read_screens(), [HEAD.format(title="Tried by hand", about=TRIED.strip())]
    for number, one in enumerate(TRIES, 1):
        parts += [f"## {number}. {one.title}\n", f"{one.command}\n"]
        parts += [frame(screen) for screen in screens[one.name][: MOST_SCREENS.get(one.name)]]
        parts += [f"{one.notice}\n"]
    return "\n".join(parts)


def build_seen() -> str:
    """Return the page of one handoff in three screens."""
    parts = [HEAD.format(title="A handoff on the screen", about=SEEN.strip())]
    for (title, notice), screen in zip(MOMENTS, read_screens()["bar"], strict=True):
        parts += [f"## {title}\n", frame(screen), f"{notice}\n"]
    return "\n".join([*parts, WATCHED])


def frame(screen: str) -> str:
    """Return the screen as a page shows it."""
    return f"```\n{screen}\n```\n"


PAGES = {"tried-by-hand.md": build_tried, "handoff-on-screen.md": build_seen}


def main() -> None:
    """Write the pages; with `record`, take the screens first."""
    if sys.argv[1:2] == ["record"]:
        record(sys.argv[2:])
    if not all(name in read_screens() for name in PLAYS):
        return
    for name, build in PAGES.items():
        with open(f"{HERE}/{name}", "w", encoding="utf-8") as file:
            file.write(build())


if __name__ == "__main__":
    main()
