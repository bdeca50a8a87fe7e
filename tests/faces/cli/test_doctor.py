"""`agent-relay doctor` says only what it has looked at, as it finds it, and leaves nothing behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from agent_relay.system.processes import list_pids
from tests.faces.cli_run import World
from tests.house import tree
from tests.support.installations import Installation
from tests.support.piped import Piped, piped
from tests.support.preloaded import Command
from tests.support.relay_world import RelayWorld, is_stopped, relay_world, wait_until
from tests.support.seats import run, seat

pytestmark = pytest.mark.size("every")

KEYS = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x", "GEMINI_API_KEY": "x"}
COST = "packets will not describe the working tree"
ALONE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


@pytest.fixture
def world(world: World) -> World:
    """A user who is signed in to three agents, none of which is installed yet."""
    os.mkdir(f"{world.home}/bin")
    return world


def install(world: World, name: str, script: str) -> None:
    """A program of that name is first on the PATH."""
    path = f"{world.home}/bin/{name}"
    Path(path).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    os.chmod(path, 0o700)


def variables(world: World) -> dict[str, str]:
    return {**KEYS, "PATH": f"{world.home}/bin:{os.defpath}"}


def start(world: World, *words: str) -> AbstractContextManager[Piped]:
    """The command under way."""
    return piped(Command(words, world.environ() | variables(world), world.cwd))


def examine(world: World) -> dict[str, dict[str, str]]:
    """The findings by what they are about: the first word of each."""
    done = world.run_with(variables(world), "doctor", "--json")
    assert done.err == ""
    return {one["what"].split()[0]: one for one in json.loads(done.out)["findings"]}


def find_sleepers(seconds: int) -> list[int]:
    """The processes that were told to sleep for exactly that long."""
    found = []
    for pid in list_pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read().split(b"\0")[:2] == [b"sleep", b"%d" % seconds]:
                found.append(pid)
    return found


def test_agents_tools_that_are_not_installed_are_told_by_whether_somebody_asked(world: World) -> None:
    """Most users never miss them; whoever turned them on has to learn why no agent has any."""
    lacks = f"{world.home}/lacks"
    os.mkdir(lacks)
    Path(f"{lacks}/sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None", "utf-8")
    told = {}
    for setting in ("", "agent_tools = true\n", "agent_tools = false\n"):
        world.configure(setting)
        done = world.run_with(
            {**variables(world), "PYTHONPATH": f"{lacks}:{tree.CHECKOUT}"}, "doctor", "--json"
        )
        told[setting[14:-1]] = [
            one["level"] for one in json.loads(done.out)["findings"] if "agent-relay[mcp]" in one["remedy"]
        ]
    assert told == {"": ["ok"], "true": ["note"], "false": []}


def test_an_agent_newer_than_what_was_tried_is_told_each_time(world: World) -> None:
    """A start says it once; who asks gets an answer, and versions tried before are nothing to tell."""
    install(world, "claude", "echo '2.1.197 (Claude Code)'")
    install(world, "codex", "echo 'codex-cli 99.0.1'")
    for _ in range(2):
        done = world.run_with(variables(world), "doctor")
        assert "codex 99.0.1 is newer than 0.169.0, the newest version agent-relay was tried with" in done.out
        assert "claude 2.1.197 (Claude Code) at " in done.out
        assert "claude 2.1.197 is newer" not in done.out


def test_agents_are_asked_side_by_side_within_one_limit(world: World) -> None:
    """Three that hang took half a minute, one after another; one whose child holds its output, for ever.

    They were told as "start it once by hand", which changes nothing.
    """
    for name in ("claude", "codex", "gemini"):
        install(world, name, "sleep 7002 & sleep 7002")
    with start(world, "doctor", "--json") as doctor:
        wait_until(lambda: len(find_sleepers(7002)) == 6, "all are asked at once")
        out = doctor.stdout.read()
    late = [one for one in json.loads(out)["findings"] if "within 10 s" in one["what"]]
    assert [one["what"].split()[0] for one in late] == ["claude", "codex", "gemini"]
    assert late[0] == {
        "level": "note",
        "what": "claude did not answer --version within 10 s, so it may not work",
        "remedy": f"It may only be slow. See how long it takes: {world.home}/bin/claude --version",
    }
    assert find_sleepers(7002) == []


@pytest.mark.size("test")
def test_an_agent_that_cannot_work_is_not_told_as_one_that_can(world: World) -> None:
    """A program that ends by a signal or with an error was `ok unknown`, and counted for a handoff."""
    install(world, "claude", "kill -SEGV $$")
    install(world, "codex", "echo 'env: node: No such file or directory' >&2; exit 127")
    Path(f"{world.home}/bin/gemini").write_text("no program\n", "utf-8")
    os.chmod(f"{world.home}/bin/gemini", 0o700)
    found = {name: one["what"] for name, one in examine(world).items()}
    assert found["claude"] == "claude was ended by SIGSEGV when it was asked for its version"
    assert found["codex"] == "codex --version ended with status 127: env: node: No such file or directory"
    assert found["gemini"] == f"gemini at {world.home}/bin/gemini cannot be started: Exec format error"
    assert found["0"] == "0 agents can work here, a handoff takes two"


def test_what_an_agent_writes_for_ever_is_not_waited_for(world: World) -> None:
    """A megabyte, or no end, in place of a version is read by nobody; its end counts, not its children's."""
    install(world, "claude", "exec head -c 1000000 /dev/zero")
    install(world, "codex", "exec yes")
    install(world, "gemini", "echo 0.1.0\nsleep 7003 &")
    found = {name: one["what"] for name, one in examine(world).items()}
    for name in ("claude", "codex"):
        assert found[name] == f"{name} answers --version with more than 64 KiB, which is not a version"
    assert found["gemini"] == f"gemini 0.1.0 at {world.home}/bin/gemini"
    for pid in find_sleepers(7003):
        os.kill(pid, signal.SIGKILL)


def test_each_line_is_out_as_soon_as_it_is_found(world: World) -> None:
    """Twenty seconds of silence look like a program that hangs."""
    install(world, "claude", "exec sleep 7004")
    with start(world, "doctor") as doctor:
        assert doctor.stdout.readline().startswith("ok      agent-relay ")
        assert find_sleepers(7004) != [] or doctor.process.poll() is None
        for line in doctor.stdout:
            if line.startswith("ok      git "):
                break
        assert doctor.process.poll() is None
        assert doctor.end(signal.SIGINT) == 130
    wait_until(lambda: find_sleepers(7004) == [], "nothing is left of it")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_a_doctor_that_is_ended_leaves_no_process(world: World, number: signal.Signals) -> None:
    """What it asks must not outlive whoever asked."""
    seconds = 7100 + number
    install(world, "claude", f"sleep {seconds} & sleep {seconds}")
    with start(world, "doctor", "--json") as doctor:
        wait_until(lambda: len(find_sleepers(seconds)) == 2, "the agent is asked")
        assert doctor.end(number) == 128 + number
        assert (doctor.stdout.read(), doctor.stderr.read()) == ("", "")
    wait_until(lambda: find_sleepers(seconds) == [], "nothing is left of it")


def test_a_reader_who_leaves_early_ends_it(world: World) -> None:
    """`doctor | head -1` is no mistake of ours."""
    install(world, "claude", "sleep 7005 & sleep 7005")
    with start(world, "doctor") as doctor:
        doctor.stdout.readline()
        doctor.stdout.close()
        assert (doctor.wait(), doctor.stderr.read()) == (141, "")
    wait_until(lambda: find_sleepers(7005) == [], "nothing is left of it")


def on_a_disk(world: World, place: str, options: str) -> dict[str, dict[str, str]]:
    """The findings where `place` is on a tmpfs mounted with `options`, seen by doctor alone."""
    fill = 'case $2 in *size*) cat /dev/zero > "$1/filler" 2>&-;; esac'
    mount = f'mount -t tmpfs -o "$2" none "$1" && {{ {fill}; cd "$3" && shift 3 && exec "$@"; }}'
    command = [sys.executable, "-m", "agent_relay", "doctor", "--json"]
    done = subprocess.run(
        [*ALONE, "sh", "-c", mount, "sh", place, options, world.cwd, *command],
        env=world.environ() | variables(world),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if b"mount" in done.stderr:
        pytest.skip(reason="this user may not mount a file system")
    findings = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    return {one["what"]: one for one in findings if one["level"] != "ok"}


def test_a_tree_nothing_can_be_written_to_is_a_problem(world: World) -> None:
    """It was "ok: will get a private .agent-relay folder"; only the disk itself can say."""
    for options, why, remedy in (
        ("ro,mode=0700", "Read-only file system", "That disk is read-only."),
        ("size=64k,mode=0700", "No space left on device", "Free some space on that disk."),
    ):
        what = f"cannot write {world.cwd}/.agent-relay: {why}"
        told = {"level": "problem", "what": what, "remedy": remedy}
        assert on_a_disk(world, world.cwd, options)[what] == told


def test_a_home_nothing_can_be_written_to_is_a_problem(world: World) -> None:
    """It was "ok: will be made when needed", and the daemon could not start."""
    place = f"{world.home}/relay"
    os.mkdir(place, 0o700)
    found = on_a_disk(World(place, world.cwd), place, "ro,mode=0700")
    why = "Read-only file system"
    costs = {
        "run": "",
        "state": "",
        "config": ": agent-relay can change no setting of yours",
        "cache": ": usage is read anew each time it is asked for",
    }
    levels = [
        found[f"cannot make the folder {place}/{name}: {why}{cost}"]["level"] for name, cost in costs.items()
    ]
    assert levels == ["problem", "problem", "note", "note"]


def test_something_else_in_the_place_of_the_folder_is_a_problem(world: World) -> None:
    """A link to nowhere was told as a folder to be made."""
    path = Path(world.cwd, ".agent-relay")
    path.touch()
    told = f"problem {path} is a file where relay needs a folder - Move the file away."
    assert told in world.run("doctor").out.splitlines()
    path.unlink()
    path.symlink_to("/nowhere")
    told = f"problem {path} is a symlink, so relay will not write through it - Remove the link."
    assert told in world.run("doctor").out.splitlines()


def test_a_file_in_the_place_of_a_home_is_a_problem_and_no_mistake_of_ours(world: World) -> None:
    """It ended with a crash report."""
    Path(f"{world.home}/file").touch()
    done = world.run_with({"AGENT_RELAY_HOME": f"{world.home}/file/relay"}, "doctor")
    assert (done.status, done.err) == (1, "")
    assert f"problem cannot make the folder {world.home}/file/relay/run: Not a directory" in done.out


@pytest.mark.size("test")
def test_a_look_leaves_nothing_behind(world: World) -> None:
    """Whoever only asks finds the tree and the home as they were, times included."""
    before = {place: sorted(os.listdir(place)) for place in (world.home, world.cwd)}
    times = {place: os.stat(place).st_mtime_ns for place in before}
    told = f"ok      {world.cwd} can get an .agent-relay folder that can be written to"
    assert told in world.run("doctor").out
    assert {place: sorted(os.listdir(place)) for place in before} == before
    assert {place: os.stat(place).st_mtime_ns for place in before} == times


def test_git_is_asked_and_not_only_found(world: World) -> None:
    """A git that cannot run was `ok`."""
    install(world, "git", "exit 1")
    found = examine(world)
    assert found["git"]["what"] == f"git --version ended with status 1; {COST}"
    os.unlink(f"{world.home}/bin/git")
    done = world.run_with({"PATH": f"{world.home}/bin"}, "doctor")
    told = "note    git is not installed: packets will not describe the working tree - Install git"
    assert told in done.out.splitlines()


@pytest.fixture
def hosted() -> Iterator[RelayWorld]:
    """A machine on which a daemon may run, of somebody who works with one agent."""
    with relay_world(order=("claude",)) as world:
        yield world


def test_a_frozen_daemon_is_named_with_what_sets_it_going(hosted: RelayWorld) -> None:
    """It was "the daemon did not say hello in time" after ten silent seconds."""
    daemon = hosted.start_daemon()
    assert f"ok      the daemon runs (pid {daemon.pid})" in run(hosted, "doctor").out.splitlines()
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: is_stopped(daemon.pid), "it is frozen")
        out = run(hosted, "doctor").out
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    what = f"the daemon (pid {daemon.pid}) is stopped by a signal or a debugger, so it cannot answer"
    assert f"problem {what} - Continue it: kill -CONT {daemon.pid}" in out.splitlines()


def test_a_daemon_that_could_not_start_is_not_told_as_one_that_will(tmp_path: Path, world: World) -> None:
    """Nobody had looked whether it could."""
    installation = Installation(f"{tmp_path}/installed")
    os.unlink(f"{installation.folder}/agent_relay/daemon/server.py")
    done = world.run_with({"PYTHONPATH": installation.folder}, "doctor")
    assert done.status == 1
    assert "problem the daemon cannot be loaded: No module named" in done.out


def test_a_terminal_shows_whom_is_waited_for(hosted: RelayWorld) -> None:
    """A person sees that something is going on, and for how long it may; nothing of that stays."""
    os.mkdir(f"{hosted.folder}/bin")
    install(World(hosted.folder, hosted.project), "claude", "exec sleep 7006")
    there = {**KEYS, "PATH": f"{hosted.folder}/bin:{os.defpath}"}
    with seat(hosted, "doctor", variables=there, shows="asking claude: at most 10 s") as person:
        assert "git version" in person.text()
        assert person.wait_for_end() == 1
        shown = person.text()
    assert "asking" not in shown
    assert "claude did not answer --version within 10 s" in shown.replace("\n", "")
    with seat(hosted, "doctor", variables={**there, "NO_COLOR": "1"}) as person:
        person.wait_for("Asking git, claude: at most 10 s")
        person.type(b"\x03")
        assert person.wait_for_end() == 130
        assert b"\x1b" not in person.received
    wait_until(lambda: find_sleepers(7006) == [], "nothing is left of it")
