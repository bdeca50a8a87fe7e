"""A whole handoff in every folder people really work in: the work goes on, and git sees nothing of ours."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from tests.support.handoffs import LIMIT, PICKED_UP, git, open_work, write_screenplays
from tests.support.ordinary_places import PLACES, Place
from tests.support.relay_world import RelayWorld, relay_world
from tests.support.sizes import sized


@pytest.fixture(scope="module")
def world() -> Iterator[RelayWorld]:
    """One machine and one daemon for all places, as a user has."""
    with relay_world() as world:
        world.start_daemon()
        yield world


def see(place: Place) -> dict[str, object]:
    """All that a user can see of us: git's view of every repository, and every file but ours and git's."""
    seen: dict[str, object] = {
        folder: git(folder, "status", "--porcelain", "-z", "--untracked-files=all")
        for folder in place.repositories
    }
    for folder, below, files in os.walk(place.root):
        if ".agent-relay" in below and folder == place.root:
            below.remove(".agent-relay")
        below[:] = [name for name in below if name != ".git"]
        seen[folder] = (sorted(below), sorted(files))
    for folder in place.repositories:
        at = git(folder, "rev-parse", "--absolute-git-dir").removesuffix("\n")
        seen[at] = sorted(os.listdir(at))
        with open(f"{at}/index", "rb") as index:
            seen[f"{at}/index"] = index.read()
    return seen


@pytest.mark.parametrize("name", sized(PLACES, ["spaces and quotes", "worktree"]))
def test_a_limit_is_handed_over_in_every_ordinary_folder(world: RelayWorld, name: str) -> None:
    """A tool that breaks on a blank in a name, or leaves files in the user's status, is not used twice."""
    base = f"{world.folder}/places/{list(PLACES).index(name)}"
    os.makedirs(base)
    place = PLACES[name](base)
    edit = {"edit": place.file, "replace": {"draft": "draft, seen by the agent"}}
    plays = write_screenplays(f"{base}-plays", demo=[{"do": [edit, LIMIT]}])
    before = see(place)

    work = open_work(world, place.cwd, place.root, env={**world.environ, **plays})
    work.type("please go on with the notes")
    session = work.wait_for_successor()

    assert [(done.from_agent, done.to_agent) for done in session.done] == [("demo", "understudy")]
    packet = json.loads(Path(work.folder, session.done[0].json_path).read_bytes())
    assert place.touched in {file["path"] for file in packet["touched_files"]}
    assert packet["unprocessed_prompt"]["text"] == "please go on with the notes"
    assert (packet.get("git") or {}).get("note", "") == place.note
    rows = work.native_rows()
    assert [row["text"] for row in rows if row["type"] == "say"] == [PICKED_UP]
    (prompt,) = (str(row["text"]) for row in rows if row["type"] == "prompt")
    shown = place.touched.replace("\n", "\\n").replace("</", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}/")
    assert shown in prompt
    assert rows[0]["cwd"] == os.path.realpath(place.cwd)
    assert "draft, seen by the agent" in Path(place.cwd, place.file).read_text("utf-8")
    assert see(place) == before
    work.stop()


def test_a_read_only_project_is_refused_in_one_sentence_and_nothing_is_started(world: RelayWorld) -> None:
    """Without a journal nothing can be handed over: better said before the work than after."""
    folder = find_unwritable(world)
    before = (world.processes(), world.ask("session.list")["sessions"])
    with pytest.raises(RelayError) as refused:
        open_work(world, folder, folder)
    assert refused.value.sentence.startswith(f"cannot write {folder}/.agent-relay: ")
    assert (world.processes(), world.ask("session.list")["sessions"]) == before
    assert not os.path.exists(f"{folder}/.agent-relay")


def find_unwritable(world: RelayWorld) -> str:
    """A folder this user cannot write to. To root only the kernel says no."""
    if os.geteuid() == 0:
        return "/sys/kernel"
    folder = f"{world.folder}/read-only"
    os.mkdir(folder, 0o500)
    return folder
