"""What an agent thinks to itself: told to who follows, and written down nowhere by relay."""

import os
import re
from collections.abc import Iterator

import pytest

from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import LIMIT, read_lines, run, run_on_terminal, run_world

pytestmark = pytest.mark.size("every")

SECRET = "perhaps-it-was-the-intern"
PLAN = [{"text": "mend add()", "status": "in_progress"}]
SCENES = [
    {
        "do": [
            {"think": f"Hm, {SECRET}."},
            {"plan": PLAN},
            {"edit": "calc.py", "text": "def add(a, b):\n    return a + b\n"},
            {"say": "I mended it."},
            LIMIT,
        ]
    }
]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents, the first of which thinks aloud."""
    with run_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        yield made


def read_all(*folders: str) -> dict[str, bytes]:
    """Every file below the folders."""
    found = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for path in (os.path.join(folder, name) for name in names):
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[path] = file.read()
    return found


def test_thoughts_are_told_once_and_kept_nowhere(world: RelayWorld) -> None:
    """Neither journal nor packet, neither log nor anything else of relay's holds a word of them."""
    status, out, _ = run(world, "demo", "Mend add().", "--json")
    assert status == 0
    told = read_lines(out)
    assert [line["text"] for line in told if line["type"] == "thought"] == [f"Hm, {SECRET}."]
    assert [line["steps"] for line in told if line["type"] == "plan"] == [
        [{"id": "", "text": "mend add()", "status": "doing"}]
    ]
    (edit,) = [line for line in told if line["type"] == "edit"]
    assert (edit["path"], edit["diff"]) == ("calc.py", "@@ -0,0 +1,2 @@\n+def add(a, b):\n+    return a + b")
    wait_until(lambda: os.listdir(world.folders.legs) == [], "nothing of the legs is left")
    kept = read_all(f"{world.project}/.agent-relay", str(world.environ["AGENT_RELAY_HOME"]))
    assert any(path.endswith("-understudy.md") for path in kept)
    assert any(path.endswith("journal.jsonl") for path in kept)
    assert [path for path, data in kept.items() if SECRET.encode() in data] == []


def test_thoughts_are_no_output(world: RelayWorld) -> None:
    """`run … > answer.txt` holds the answer."""
    status, out, err = run(world, "demo", "Mend add().")
    assert status == 0
    assert out.startswith("I mended it.\n")
    assert SECRET not in out + err


def test_on_a_terminal_the_turn_is_laid_out(world: RelayWorld) -> None:
    """Whoever watches sees what a turn does, not only what it says at its end."""
    status, given = run_on_terminal(world, "demo", "Mend add().")
    assert status == 0
    assert f"\x1b[2;3m~ Hm, {SECRET}.\x1b[0m\n" in given
    assert "\x1b[1m  ▸ mend add()\x1b[0m\n" in given
    assert "● edit calc.py\n" in re.sub(r"\x1b\[\d+m", "", given)
    assert "\x1b[32m  +    return a + b\x1b[0m\n" in given
    assert "→ demo hit its session limit (resets " in given
    assert re.search(
        r"\n→ Session \w{26}\. Its next turn: agent-relay run \w+ --continue \w{26} TASK\n$", given
    )
