"""The examples that need a whole machine, and the newcomer's page, are as they stand when they are played."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
import yaml

from agent_relay.system.disk.folders import get_folders
from tests.house import tree
from tests.support.handoffs import git, write_screenplays
from tests.support.measured import measured
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, relay_world

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
EDIT = {"edit": "notes.txt", "text": "the parser takes trailing commas\n"}
PATCH = "+the parser takes trailing commas\n"


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A newcomer's machine: nothing is configured, and `agent-relay` is on the path."""
    with relay_world(order=()) as world:
        del world.environ["AGENT_RELAY_HOME"]
        world.environ |= {
            name: f"{world.folder}/{name}" for name in ("XDG_RUNTIME_DIR", "TMPDIR", "RUNNER_TEMP")
        }
        for name in ("XDG_RUNTIME_DIR", "TMPDIR", "RUNNER_TEMP"):
            os.mkdir(world.environ[name], 0o700)
        world.environ |= {"PATH": f"{world.folder}/bin:{world.environ['PATH']}", "PYTHONPATH": tree.CHECKOUT}
        world.folders = get_folders(world.environ)
        os.mkdir(f"{world.folder}/bin")
        command = f"{world.folder}/bin/agent-relay"
        with open(command, "w", encoding="utf-8") as stream:
            stream.write(f'#!/bin/sh\nexec "{sys.executable}" -m agent_relay "$@"\n')
        os.chmod(command, 0o700)
        yield world


def _shell(
    world: RelayWorld, words: str, *, cwd: str, more: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """How `words` ended, run as a CI runs a step."""
    return subprocess.run(
        ["bash", "-e", "-c", words],
        cwd=cwd,
        env=world.environ | measured() | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def _play(world: RelayWorld, **scenes: Sequence[dict[str, object]]) -> None:
    world.environ |= write_screenplays(f"{world.folder}/plays", **scenes)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def _find_commands() -> str:
    (commands,) = re.findall(r"```sh\n(.*?)```", tree.read_text("examples/README.md"), re.DOTALL)
    return str(commands)


def test_the_commands_of_the_page_run_an_agent_of_ones_own(world: RelayWorld) -> None:
    """Somebody pastes them who has no such agent yet; the last one is its screen."""
    terminal = Terminal(
        ["bash", "-e", "-c", _find_commands()], env=world.environ | measured(), cwd=tree.CHECKOUT
    )
    terminal.wait_for(r"(?m)^scribe>")
    terminal.send("And empty lists.\r")
    terminal.wait_for(r"scribe> And empty lists\.[\s\S]*I wrote it into NOTES\.md\.\s+scribe>")
    terminal.send("\x04")
    assert terminal.wait_exit() == 0
    terminal.close()
    (folder,) = [name for name in os.listdir(world.environ["TMPDIR"]) if name.startswith("tmp.")]
    notes = _read(f"{world.environ['TMPDIR']}/{folder}/NOTES.md")
    assert notes == "The parser takes trailing commas.\nAnd empty lists.\n"


def _install_scribe(world: RelayWorld, *order: str) -> None:
    """What the page does before it leaves the checkout, and who is asked."""
    words = f"{_find_commands().partition('cd ')[0]}\nagent-relay order {' '.join(order)}"
    assert _shell(world, words, cwd=tree.CHECKOUT, more={}).returncode == 0


def test_an_agent_of_ones_own_hands_over_at_its_limit(world: RelayWorld) -> None:
    """An example whose limit relay did not see would teach a rule that does not work."""
    _play(world, understudy=[{"when": "handoff-context", "do": [{"say": "I have read it."}]}])
    _install_scribe(world, "scribe", "understudy")
    terminal = Terminal(
        ["agent-relay", "scribe"],
        env=world.environ | measured() | {"SCRIBE_ALLOWANCE": "1"},
        cwd=world.project,
    )
    terminal.wait_for("scribe>")
    terminal.send("The parser takes trailing commas.\r")
    terminal.wait_for(r"I wrote it[\s\S]*scribe>")
    terminal.send("And empty lists.\r")
    terminal.wait_for("I have read it")
    terminal.close()
    (session,) = os.listdir(f"{world.project}/.agent-relay/sessions")
    packet = _read(f"{world.project}/.agent-relay/sessions/{session}/resume/0001-understudy.md")
    assert "Your daily allowance is used up." in packet
    assert "And empty lists." in packet


def test_an_agent_of_ones_own_takes_over(world: RelayWorld) -> None:
    """A packet that is pasted in several lines must reach it as one prompt."""
    _play(world, demo=[{"do": [LIMIT]}])
    _install_scribe(world, "demo", "scribe")
    terminal = Terminal(["agent-relay", "agent", "demo"], env=world.environ | measured(), cwd=world.project)
    terminal.wait_for(r"ready \| demo")
    terminal.send("The parser takes trailing commas.\r")
    terminal.wait_for(r"I wrote it into NOTES\.md\.\s+scribe>")
    terminal.send("\x04")
    assert terminal.wait_exit() == 0
    terminal.close()
    notes = _read(f"{world.project}/NOTES.md")
    assert notes.startswith("<handoff-context>\n# Handoff: demo → scribe\n")
    assert notes.endswith("Continue from the handoff-context above.\n")
    assert "The parser takes trailing commas." in notes


CASES = {
    "done": ([{"do": [EDIT, {"say": "Done by demo."}]}], [], 0, "Done by demo.", PATCH),
    "handed over": (
        [{"do": [LIMIT]}],
        [{"do": [EDIT, {"say": "Done by understudy."}]}],
        0,
        "Continuing with understudy.",
        PATCH,
    ),
    "obeyed by nobody": (
        [{"do": [EDIT, {"say": "\n::error::Somebody else's words."}]}],
        [],
        0,
        "Somebody else's words.",
        PATCH,
    ),
    "failed": ([{"do": [EDIT, {"exit": 4}]}], [], 1, "::error::The agent failed", PATCH),
    "nobody is left": ([{"do": [LIMIT]}], [{"do": [LIMIT]}], 3, "::error::Every agent rests", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_the_ci_job_tells_how_the_task_ended_and_keeps_what_came_of_it(world: RelayWorld, case: str) -> None:
    """A job that is green without the work, or red without a word, costs somebody's morning."""
    demo, understudy, status, told, patch = CASES[case]
    _play(world, demo=demo, understudy=understudy)
    git(world.project, "init", "-q")
    git(world.project, "commit", "-q", "--allow-empty", "-m", "first")
    job = yaml.safe_load(tree.read_text("examples/ci-job.yml"))["jobs"]["task"]
    steps = [step for step in job["steps"] if "run" in step and step["name"] != "Install"]
    given = {"TASK": "Let the parser take trailing commas.", "AGENTS": "demo understudy"}
    assert set(given) < set(job["env"])
    ended = {}
    for step in steps:
        if step.get("if") == "always()" or not any(done.returncode for done in ended.values()):
            ended[step["name"]] = _shell(world, step["run"], cwd=world.project, more=given)
    work = ended.pop("Work")
    assert (work.returncode, told in work.stdout) == (status, True), work.stdout
    # What stands between the two lines is no command to the CI, whatever an agent writes.
    quoted = re.fullmatch(
        r"::stop-commands::(\w{32})\n(?P<words>[\s\S]*)\n::\1::\n(?:::error::.*\n)?", work.stdout
    )
    assert quoted is not None, work.stdout
    assert quoted[1] not in quoted["words"]
    assert {name: (done.returncode, done.stderr) for name, done in ended.items()} == dict.fromkeys(
        ended, (0, "")
    )
    out = f"{world.environ['RUNNER_TEMP']}/out"
    assert sorted(os.listdir(out)) == ["answer.txt", "changes.patch", "relay.txt", "status.json"]
    assert patch in _read(f"{out}/changes.patch")
    assert ".agent-relay" not in _read(f"{out}/changes.patch")
    assert "→ Session " in _read(f"{out}/relay.txt")


def test_the_ci_job_puts_no_words_of_others_into_its_commands() -> None:
    """An expression inside `run` is pasted into the script: a task could be any command."""
    job = yaml.safe_load(tree.read_text("examples/ci-job.yml"))["jobs"]["task"]
    assert [step["name"] for step in job["steps"] if "${{" in step.get("run", "")] == []
    (kept,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    assert (kept["if"], kept["with"]["path"]) == ("always()", "${{ runner.temp }}/out")


@pytest.mark.timeout(900)
def test_the_recorded_first_minutes_are_what_a_newcomer_sees() -> None:
    """Played again in a real terminal, the same keys show the same; else run docs/first_minutes.py."""
    place = os.path.join(tree.CHECKOUT, "docs", "first_minutes.py")
    spec = importlib.util.spec_from_file_location("first_minutes", place)
    assert spec is not None
    assert spec.loader is not None
    walk = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walk)
    assert walk.build_page() == tree.read_text("docs/first-minutes.md")
