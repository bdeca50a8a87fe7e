"""What is asked of metrics again is answered with what has come since."""

import json
from pathlib import Path

import pytest

from tests.faces.cli_run import World, create_world

pytestmark = pytest.mark.size("test")

WORDS = ("metrics", "--all", "--json")


def _row(key: str, output: int) -> str:
    message = {"id": key, "model": "m", "usage": {"input_tokens": 1, "output_tokens": output}}
    row = {"sessionId": "s1", "message": message, "type": "assistant", "timestamp": "2026-11-20T10:00:00Z"}
    return json.dumps(row, separators=(",", ":")) + "\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A machine with one answer of 5 tokens in one file."""
    world = create_world(f"{tmp_path}")
    path = Path(world.home, ".claude/projects/a/s1.jsonl")
    path.parent.mkdir(parents=True)
    path.write_text(_row("m1", 5))
    return world


def _ask(world: World, *words: str) -> int:
    done = world.run(*(words or WORDS))
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)["total"]["output_tokens"]
    assert isinstance(found, int)
    return found


def test_what_has_grown_is_read_at_the_next_look(world: World) -> None:
    """A figure of yesterday would be worse than a slow one."""
    assert _ask(world) == 5
    with Path(world.home, ".claude/projects/a/s1.jsonl").open("a") as file:
        file.write(_row("m2", 7))
    assert _ask(world) == 12


def test_another_question_has_an_answer_of_its_own(world: World) -> None:
    """Rows, filters and folders are parts of the question."""
    assert _ask(world) == 5
    assert len(json.loads(world.run(*WORDS, "--by", "model").out)["rows"]) == 1
    assert _ask(world, *WORDS, "--agent", "codex") == 0
    assert json.loads(world.run("metrics", "--json").out)["rows"] == []
    assert world.run("metrics", "--all").out.startswith("session")
