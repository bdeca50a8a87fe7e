"""Files and checks are looked up when a packet is built, and again when it is picked up."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from agent_relay.store.packets import list_packets
from tests.support.at_work import WorkingWorld, working_world
from tests.support.handoffs import git
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

_TEST = "import unittest\n\nclass Test(unittest.TestCase):\n    def test(self) -> None:\n        pass\n"
_NAMES = ("a.py", "b.py", "c.py")
_CHECK = "python3 -m unittest -q test_all"


def _edit(name: str) -> dict[str, object]:
    return {"edit": name, "replace": {"one": f"two\nthree {name}"}}


_SCENES: list[dict[str, object]] = [
    {"when": "begin", "do": [_edit("a.py"), _edit("b.py"), {"run": _CHECK}, {"say": "tested"}]},
    {"when": "go on", "do": [_edit("c.py"), {"say": "now changed"}]},
]


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """An agent that edits and tests in a repository with a commit."""
    with working_world(starts=False, demo=_SCENES) as made:
        for name in _NAMES:
            _write(made, name, "one\n")
        _write(made, "test_all.py", _TEST)
        _write(made, ".gitignore", "__pycache__\n")
        git(made.project, "init")
        git(made.project, "add", ".")
        git(made.project, "commit", "-m", "first")
        yield made


def _write(world: WorkingWorld, name: str, text: str) -> None:
    Path(f"{world.project}/{name}").write_text(text, "utf-8")


def _save(world: WorkingWorld, session: str) -> str:
    """The stem of a packet's files, saved without a launch."""
    world.open("understudy", no_launch=True, session=session)
    return list_packets(f"{world.project}/.agent-relay/sessions/{session}")[-1][2].removesuffix(".json")


def _read(stem: str) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(Path(f"{stem}.json").read_bytes()))


def _list_files(document: dict[str, object]) -> list[tuple[object, ...]]:
    files = cast("list[dict[str, object]]", document.get("touched_files", []))
    return [(file["path"], file["status"], file.get("added"), file.get("removed")) for file in files]


def test_a_packet_tells_files_and_checks_of_the_tree_that_is_there(world: WorkingWorld) -> None:
    """What was committed is no longer changed, and a check from before an edit proves nothing."""
    session = world.begin_worked("begin with it")
    document = _read(_save(world, session))
    assert _list_files(document) == [("a.py", "modified", 2, 1), ("b.py", "modified", 2, 1)]
    assert document["validation_state"] == {"tests": "passed"}
    git(world.project, "commit", "-m", "second", "a.py")
    git(world.project, "checkout", "b.py")
    world.say(session, "go on with it")
    wait_until(lambda: '"now changed"' in world.read_record(session), "the second turn is recorded")
    document = _read(_save(world, session))
    assert _list_files(document) == [("c.py", "modified", 2, 1)]
    assert "validation_state" not in document
    (run,) = cast("list[dict[str, object]]", document["validation_runs"])
    assert (run["verdict"], run["changed_since"]) == ("passed", 1)


def test_an_edited_packet_is_compared_with_the_tree_at_its_pickup(world: WorkingWorld) -> None:
    """Its user worked on in the meantime: the successor learns which lines no longer hold."""
    session = world.begin_worked("begin with it")
    with open(f"{_save(world, session)}.md", "a", encoding="utf-8") as file:
        file.write("\nMind the gap.\n")
    git(world.project, "checkout", "b.py")
    _write(world, "c.py", "four\n")
    world.open("understudy", session=session)
    world.wait_handed_over(session)
    told = world.read_record(session)
    assert "Mind the gap." in told
    assert "1 file changed since: c.py" in told
    assert "1 file listed as changed, now as in HEAD: b.py" in told
    assert f"`{_CHECK}` passed before 2 files changed" in told
