"""`.agent-relay.example` is a project's folder after one handoff, and stays readable for ever."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.agents.adapter_folders import find_example_folder
from agent_relay.domain.documents.packet import Reason
from agent_relay.domain.state import State
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events
from agent_relay.store.packets import list_packets, read_delivery_text, read_packet
from agent_relay.store.project import check_project
from agent_relay.store.session_index import read_summary
from tests.faces.cli_run import create_world
from tests.house import tree

FOLDERS = pytest.mark.parametrize(
    "example", [find_example_folder(), tree.FIRST_FOLDER], ids=["today", "earlier"]
)


def _find_session(example: str) -> tuple[str, str]:
    sessions = os.path.join(example, "sessions")
    (session,) = os.listdir(sessions)
    return session, os.path.join(sessions, session)


def _list_files(folder: str) -> dict[str, str]:
    """What each file below `folder` holds, or where a link leads."""
    return {
        f"{path.relative_to(folder)}": f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in Path(folder).rglob("*")
        if not path.is_dir()
    }


@pytest.mark.size("test")
def test_the_example_is_what_a_session_writes_today(tmp_path: os.PathLike[str]) -> None:
    """People learn the format from it, and one of last month teaches another; `make docs` writes it again."""
    place = os.path.join(tree.CHECKOUT, "docs", "example_folder.py")
    spec = importlib.util.spec_from_file_location("example_folder", place)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = os.path.join(tmp_path, "written")
    script.write_example(written)
    assert _list_files(find_example_folder()) == _list_files(written)


@FOLDERS
def test_the_journal_of_the_example_folds(example: str) -> None:
    """A journal of today must be readable by every version to come."""
    session, folder = _find_session(example)
    found = fold_events(read_events(f"{folder}/journal.jsonl"))
    assert found is not None
    assert (found.id, found.state, found.root) == (session, State.ENDED, "/home/ada/project")
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
    assert [handoff.reason for handoff in found.done] == ["rate_limit"]


@FOLDERS
def test_the_packet_of_the_example_reads_and_is_as_published(example: str) -> None:
    """A packet of today must be readable by every version to come, and nobody may have touched this one."""
    _, folder = _find_session(example)
    ((sequence, target, path),) = list_packets(folder)
    packet = read_packet(path)
    assert (sequence, target, packet.version, packet.checkpoint_reason) == (
        1,
        "understudy",
        1,
        Reason.RATE_LIMIT,
    )
    assert packet.task == "Make greet() polite: say Good day and the name. Keep the tests green."
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == "Now fix the greeting of nobody."
    assert packet.validation_state.tests == "failed"
    delivery = read_delivery_text(folder, sequence, target, render=lambda _: "made anew")
    assert delivery.edited == "nothing"
    assert delivery.text.startswith("<handoff-context>")


@pytest.mark.size("test")
@FOLDERS
def test_the_commands_read_the_example_as_a_project(example: str, tmp_path: os.PathLike[str]) -> None:
    """People look at the example with the same commands they use on their own."""
    world = create_world(f"{tmp_path}")
    shutil.copytree(example, f"{world.cwd}/.agent-relay", symlinks=True)
    session, _ = _find_session(example)
    assert check_project(world.cwd)
    assert read_summary(world.cwd, session)["state"] == "ended"
    # A folder that was copied here is what a clone brings: its session is somebody's who says so.
    assert world.run("sessions", "--claim", session).status == 0
    shown = world.run("packet", "show")
    assert shown.status == 0
    assert "Now fix the greeting of nobody." in shown.out


@pytest.mark.size("test")
def test_the_first_example_prints_what_a_successor_would_be_told(tmp_path: os.PathLike[str]) -> None:
    """The shortest proof of what a packet is, without account, session or daemon."""
    world = create_world(f"{tmp_path}")
    command = f"{world.home}/agent-relay"
    with open(command, "w", encoding="utf-8") as stream:
        stream.write(f'#!/bin/sh\nexec "{sys.executable}" -m agent_relay "$@"\n')
    os.chmod(command, 0o700)
    done = subprocess.run(
        [os.path.join(tree.CHECKOUT, "examples", "first-handoff.sh")],
        cwd=world.cwd,
        env={**world.environ(), "AGENT_RELAY": command},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Fix that, and add a test for nested lists." in done.stdout
    assert "test_error_message" in done.stdout
