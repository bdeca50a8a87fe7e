"""Writes `first-minutes.md`: a newcomer's first minutes in the relay shell, as the terminal showed them.

    python docs/first_minutes.py

Everything is played in a real terminal with the scripted agents. What differs from one machine and one day to
the next (ids, times, durations, folders) is replaced; a test plays it again and compares.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pyghostty

from tests.support.real_terminal import COLS, ROWS
from tests.support.relay_world import RelayWorld
from tests.support.runs import find_sessions
from tests.support.shells import ShellPerson, shell_world

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first-minutes.md")
HEAD = """\
# The first ten minutes

<!-- Written by docs/first_minutes.py from a real terminal; change that instead, then run it again -->

Two scripted agents, `demo` and `understudy`, stand in for yours. The rest is real: the shell, the turns, the
limit, the handoffs and their packets. Ids, times, durations and folders are made up.
"""
FILES = {
    "greet.py": 'def greet(name):\n    return "hello"\n',
    "check.py": """\
import os
import time

while os.path.exists("../busy"):
    time.sleep(0.1)
from greet import greet

for name, wanted in (("Ada", "Good day, Ada!"), ("", "Good day!")):
    print("ok  " if greet(name) == wanted else "FAIL", repr(name), "->", greet(name))
""",
}
FIRST = "Make greet() polite: say Good day and the name. check.py shows what is wanted."
SECOND = "Now mend the greeting of nobody."
PLAN = [
    {"text": "greet by name", "status": "in_progress"},
    {"text": "greet nobody", "status": "pending"},
]
DONE = [{"text": "greet by name", "status": "completed"}, {"text": "greet nobody", "status": "pending"}]
DEMO = [
    {
        "when": r"is wanted\.\s*\Z",
        "do": [
            {"think": "An f-string is enough; str.format would hide a missing name."},
            {"plan": PLAN},
            {"edit": "greet.py", "replace": {'"hello"': 'f"Good day, {name}!"'}},
            {"run": "python3 check.py"},
            {"plan": DONE},
            {"say": "`greet()` says **Good day** now.\n\n- a name works\n- nobody is still greeted oddly"},
        ],
    },
    {
        "when": r"of nobody\.\s*\Z",
        "do": [
            {"say": "I look at the greeting of nobody."},
            {"run": "python3 check.py", "limit": "You've hit your session limit", "resets_in_s": 7200},
        ],
    },
    {"again": True, "do": [{"say": "I go on."}]},
]
UNDERSTUDY = [
    {"when": r"look it over\.\s*\Z", "do": [{"say": "I agree with demo: nobody is still greeted oddly."}]},
    {
        "when": r"one line\.\s*\Z",
        "do": [{"say": "Nobody is greeted with *Good day!*, and both checks pass."}],
    },
    {"when": r"left\?\s*\Z", "do": [{"say": "Nothing is left to do."}]},
    {"when": r"thank you\.\s*\Z", "do": [{"say": "You are welcome."}]},
    {
        "when": "nobody",
        "do": [
            {"say": "I pick up the greeting of nobody."},
            {"edit": "greet.py", "replace": {'{name}!"': '{name}!" if name else "Good day!"'}},
            {"run": "python3 check.py"},
            {"say": "Both checks pass."},
        ],
    },
]
_MADE_UP = (
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "01KAMADEUP0000000000000000"),
    (r"\b\d\d:\d\d\b", "20:15"),
    (r"\b\d+(?:\.\d)? (?:ms|s|min)\b", "2.0 s"),
    (r"genai-prices [\d.]+, newest of [\d-]+", "genai-prices 0.2, newest of 2026-11-09"),
)
_CELLS = re.compile(r" {2,}")
_LEAST_CELLS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the person does: what it is, the line that is typed, and what the screen must show then.

    What is shown of the screen begins with the last line that holds `begins`, or are its last `last` lines.
    """

    about: str
    typed: str
    waits: str
    begins: str = ""
    last: int = 0
    is_over: bool = True


STEPS = (
    Step(
        "In the folder of a project: `agent-relay`. Five lines, the first time.",
        "",
        "/help lists",
        last=ROWS,
    ),
    Step(
        "A message, and its turn: what the agent thinks (dim), plans, changes and runs, and its answer.",
        FIRST,
        "nobody is still greeted",
        begins="demo > Make",
    ),
    Step(
        "Another agent, by hand. It reads a packet of what happened and gets the message.",
        "/use understudy Look it over.",
        "I agree",
        begins="> /use",
    ),
    Step(
        "Back, as a handoff to the next of the order. Agents that can write a document for it; these cannot.",
        "/handoff",
        "I go on",
        begins="> /handoff",
    ),
    Step(
        "The next message goes on in the first agent's own conversation.",
        SECOND,
        "I look at",
        begins="demo > Now",
        is_over=False,
    ),
    Step(
        "Typed while the agent works, it waits for its turn, above the prompt.",
        "Tell me in one line.",
        "waits: Tell",
        last=4,
        is_over=False,
    ),
    Step(
        "The agent hits its limit: the next one goes on with the message, and what waited is sent to it.",
        "",
        "both checks pass",
        begins="demo hit its",
    ),
    Step("How things are.", "/status", "newest packet", begins="> /status"),
    Step("Who rests until when.", "/limits", "rests until +because", begins="> /limits"),
    Step(
        "How the work went from hand to hand; above it, the session is drawn over time.",
        "/handoff history",
        "leg 6",
        begins="session 01KAMADEUP",
    ),
    Step("What it took.", "/metrics", "Money: ", begins="> /metrics"),
    Step("The same conversation in the agent's own screen.", "/attach", "ready . understudy", last=5),
    Step("There it is typed to as ever.", "Is anything left?", r"(?s)Nothing is left.*ready . under", last=7),
)


def main() -> None:
    """The page shows the shell as it is now."""
    write_text(PAGE, build_page())


def write_text(path: str, text: str) -> None:
    """The file holds `text`."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def build_page() -> str:
    """The page, from a walk that is made now."""
    with shell_world(demo=DEMO, understudy=UNDERSTUDY) as world:
        for name, text in FILES.items():
            write_text(f"{world.project}/{name}", text)
        # Where it is morning a reset is today's: in the evening its day would be told, too.
        world.kill_daemons()
        world.environ["TZ"] = f"AWAY{datetime.now(UTC).hour - 9:+d}"
        world.start_daemon()
        person = ShellPerson(world)
        try:
            return "\n".join([HEAD, *(f"{about}\n\n```\n{shown}\n```\n" for about, shown in _walk(person))])
        finally:
            person.terminal.close()


def _walk(person: ShellPerson) -> Iterator[tuple[str, str]]:
    busy = f"{person.world.folder}/busy"
    for step in STEPS:
        if step.typed == SECOND:
            write_text(busy, "")
        elif not step.typed and os.path.exists(busy):
            os.unlink(busy)
        if step.typed:
            person.type(step.typed)
        person.wait_for(step.waits)
        if step.is_over:
            person.wait_idle()
        person.terminal.wait_quiet(0.5)
        yield step.about, _cut(_read(person), step)
    person.terminal.send("\x1d")
    person.wait_for("Esc leaves")
    yield "Ctrl-] asks relay while the agent has the screen.", _cut(_read(person), Step("", "", "", last=1))
    person.type("/detach")
    person.wait_for("Back in the shell")
    person.type("Thank you.")
    person.wait_for("You are welcome")
    person.wait_idle()
    yield (
        "`/detach` leads back to the shell, and the next message goes on in that conversation.",
        _cut(_read(person), Step("", "", "", begins="Back in the")),
    )
    person.type("/exit")
    person.terminal.wait_exit()
    yield (
        "That is all; `/resume` in the next shell finds it again.",
        _cut(_read(person), Step("", "", "", begins="> /exit")),
    )


def _cut(lines: Sequence[str], step: Step) -> str:
    if step.last:
        return "\n".join(lines[-step.last :])
    begin = max(number for number, line in enumerate(lines) if step.begins in line)
    return "\n".join(lines[begin:])


def _read(person: ShellPerson) -> list[str]:
    """The lines of the screen as it would be in a folder, at a time and with ids that are made up."""
    emulator = pyghostty.Terminal(COLS, ROWS)
    try:
        emulator.feed(_replace(person.terminal.raw.decode("utf-8", "replace"), person.world).encode())
        lines = [line.rstrip() for line in str(emulator.text()).split("\n")]
    finally:
        emulator.close()
    lines = list(_align(lines))
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _replace(raw: str, world: RelayWorld) -> str:
    raw = raw.replace(world.project, "/home/ada/project")
    for session in find_sessions(world):
        raw = re.sub(rf"\b{session[-8:]}\b", "00000000", raw)
    for pattern, made_up in _MADE_UP:
        raw = re.sub(pattern, made_up, raw)
    return raw


def _align(lines: Sequence[str]) -> Iterator[str]:
    """The lines, the cells of tables moved to where what was replaced leaves them."""
    rows: list[list[str]] = []
    for line in [*lines, ""]:
        cells = _CELLS.split(line)
        if len(cells) >= _LEAST_CELLS and cells[0]:
            rows.append(cells)
            continue
        widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
        yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        rows = []
        yield line


if __name__ == "__main__":
    main()
