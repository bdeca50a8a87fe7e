"""The total stands below the rows wherever there is more than one, and is their sum."""

import json
from pathlib import Path

import pytest

from tests.faces.cli_run import create_world

pytestmark = pytest.mark.size("test")

TURN = [
    {"type": "prompt", "at": "2026-11-21T05:00:00Z"},
    {"type": "usage", "at": "2026-11-21T05:00:01Z", "input": 10, "output": 5},
]
FAILED = [{"type": "prompt", "at": "2026-11-21T06:00:00Z"}, {"type": "limit", "at": "2026-11-21T06:00:02Z"}]


@pytest.mark.parametrize(("rows", "shown"), [(TURN, 1), (TURN + FAILED, 3)])
def test_a_failed_turn_that_no_model_answered_has_a_row(
    tmp_path: Path, rows: list[dict[str, object]], shown: int
) -> None:
    """The model's row has one turn, and the second is nobody's; a total that adds nothing is left out."""
    world = create_world(f"{tmp_path}")
    path = Path(world.home, ".demo-agent/demo/one.jsonl")
    path.parent.mkdir(parents=True)
    first = {"type": "session", "at": "2026-11-21T05:00:00Z", "id": "one", "cwd": "/w"}
    path.write_text("".join(json.dumps(row) + "\n" for row in (first, *rows)))
    head, *table = world.run("metrics", "--all", "--by", "model").out.partition("\n\n")[0].splitlines()
    place = head.split().index("turns") - len(head.split())
    turns = {line.split()[0]: line.split()[place] for line in table}
    assert turns == dict([("scripted", "1"), ("unanswered", "1"), ("total", "2")][:shown])
