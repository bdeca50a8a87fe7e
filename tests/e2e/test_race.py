"""A whole race as a person sees it: at the command line, on a terminal, and through every kind of crash."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pexpect
import pytest
from jsonschema import Draft202012Validator

from agent_relay import __version__
from agent_relay.domain.protocol.wire import WIRE_VERSION, render_line
from agent_relay.race.journal import list_races, read_race
from tests.support.race_world import TEST, RaceWorld, edit, race_on_terminal, race_world
from tests.support.relay_world import CHECKOUT, is_daemons, is_stopped, wait_until

RED = "one\ntwo, red\nthree\nfour\nfive\n"
VERY_RED = "one\ntwo, very red\nthree\nfour, too\nfive\n"
BLUE = "one\ntwo, blue\nthree\nfour\nfive\n"
AGENTS = ("demo", "understudy", "extra")


@pytest.fixture
def world() -> Iterator[RaceWorld]:
    """A dirty repository and three agents, the second of which will win."""
    with race_world() as made:
        made.play(
            demo=edit("shed.txt", VERY_RED), understudy=edit("shed.txt", RED), extra=edit("shed.txt", BLUE)
        )
        yield made


def command(world: RaceWorld, *words: str) -> subprocess.CompletedProcess[str]:
    """What `agent-relay` prints in the project, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "agent_relay", *words],
        cwd=world.project,
        env={**world.environ, "PYTHONPATH": CHECKOUT, "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_a_race_of_three_from_the_first_word_to_the_last(world: RaceWorld) -> None:
    """Before and after, `git status` and `git worktree list` differ by the applied change, nothing else."""
    before = world.look()
    world.start_daemon()
    done = command(world, "race", *AGENTS, "paint the shed red", "--test", TEST)
    assert (done.returncode, done.stderr) == (0, "")
    assert "The winner is 2-understudy." in done.stdout
    assert "1-demo and 2-understudy: shed.txt: both change line 2" in done.stdout
    assert "1. 2-understudy: test passed, 2 lines in 1 file, " in done.stdout
    assert len(world.git("worktree", "list").splitlines()) == 4
    assert world.git("status", "--porcelain") == ' M check.sh\nA  staged.txt\n?? "not committed.txt"\n'
    shown = json.loads(command(world, "race", "show", "--json").stdout)
    assert (shown["winner"], shown["ranking"]) == ("2-understudy", ["2-understudy", "1-demo", "3-extra"])
    assert "-two\n+two, red\n" in command(world, "race", "diff").stdout
    assert "-two\n+two, blue\n" in command(world, "race", "diff", "--runner", "extra").stdout
    assert "1 file changed" in command(world, "race", "diff", "--stat").stdout
    done = command(world, "race", "apply")
    assert (done.returncode, done.stderr) == (0, "")
    assert world.read("shed.txt") == RED
    done = command(world, "race", "clean")
    assert (done.returncode, done.stderr) == (0, "")
    status, *rest = world.look()
    assert rest == list(before[1:])
    changed = [line for line in status.splitlines() if line not in before[0].splitlines()]
    assert [line.split()[-1] for line in changed] == ["shed.txt"]
    assert command(world, "race", "list").stdout == "There are no races.\n"
    assert command(world, "race", "show").returncode == 2


def test_json_is_the_result_and_nothing_before_it(world: RaceWorld) -> None:
    """Scripts read it whole; nobody winning is a failure."""
    world.play(demo=edit("shed.txt", BLUE), understudy=edit("other.txt", "x\n"))
    world.start_daemon()
    done = command(world, "race", "demo", "understudy", "paint", "--test", TEST, "--json")
    assert done.returncode == 1
    view = json.loads(done.stdout)
    schema = json.loads(command(world, "race", "schema").stdout)
    Draft202012Validator(schema).validate(view)
    assert (view["state"], view["winner"], view["overlaps"]) == ("scored", "", [])
    assert [one["test_status"] for one in view["runners"]] == [1, 1]
    refused = command(world, "race", "apply")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no runner won, so there is nothing to apply" in refused.stderr


def test_applying_again_says_that_it_is_applied_and_every_command_has_json(world: RaceWorld) -> None:
    """A second "0 files" reads like a failure; and a script parses what a person reads."""
    world.play(demo=edit("shed.txt", VERY_RED), understudy=edit("shed.txt", RED), extra=[])
    world.start_daemon()
    done = command(world, "race", "demo", "understudy", "paint", "--test", TEST, "--apply")
    assert "2-understudy is applied: 1 file in" in done.stdout
    said = command(world, "race", "apply")
    told = f"2-understudy is applied already: all its changes are in {world.project}.\n"
    assert (said.returncode, said.stdout) == (0, told)
    answer = json.loads(command(world, "race", "apply", "--json").stdout)
    assert answer == {"files": 0, "runner": "2-understudy", "why": "", "already": True}
    shown = json.loads(command(world, "race", "show", "--json").stdout)
    race = shown["race"]
    assert (shown["applied"], shown["applied_files"]) == ("2-understudy", 1)
    plain = command(world, "race", "diff").stdout
    view = json.loads(command(world, "race", "diff", "--json").stdout)
    assert view == {"race": race, "runner": "2-understudy", "diff": plain}
    cleaned = command(world, "race", "clean", "--json")
    assert json.loads(cleaned.stdout) == {"races": [{"race": race, "notes": []}]}
    assert json.loads(command(world, "race", "clean", "--all", "--json").stdout) == {"races": []}


def test_a_race_is_stopped_as_json_too(world: RaceWorld) -> None:
    """A script that stops one knows by that which it was."""
    slow = [{"when": "paint", "do": [{"wait_s": 600}]}]
    world.play(demo=slow, understudy=slow)
    world.start_daemon()
    race = world.race("demo", "understudy")
    wait_until(lambda: all(one["state"] == "running" for one in world.runners(race)), "both run", limit_s=120)
    done = command(world, "race", "stop", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"race": race, "state": "stopped"})
    assert world.show(race)["state"] == "stopped"


def test_on_a_terminal_the_table_lives_and_ctrl_c_pauses_the_race(world: RaceWorld) -> None:
    """Whoever presses it wants their machine back, not their race lost."""
    slow = [{"when": "paint", "do": [{"wait_s": 600}]}]
    world.play(demo=slow, understudy=edit("shed.txt", RED))
    world.start_daemon()
    person = race_on_terminal(world)
    person.sendintr()
    person.expect("Go on: agent-relay race resume")
    person.expect(pexpect.EOF)
    person.close()
    assert person.exitstatus == 130
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nobody works")
    world.play(demo=edit("shed.txt", VERY_RED))
    done = command(world, "race", "resume")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The winner is 2-understudy." in done.stdout


def find_begun(world: RaceWorld) -> str:
    """The id of the one race whose journal has begun; empty before that."""
    races = [race for race in list_races(world.folders) if read_race(f"{world.folders.races}/{race}")]
    return "".join(races)


LINES = (
    "race.carried",
    "runner.placing",
    "runner.placed",
    "runner.starting",
    "turn.begun",
    "leg.starting",
    "leg.started",
    "turn.ended",
    "runner.started",
    "runner.ended",
    "runner.counted",
    "runner.measured",
    "runner.testing",
    "runner.tested",
    "race.scored",
    "race.applying",
    "race.applied",
)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("line", LINES)
def test_a_race_killed_at_any_line_goes_on(world: RaceWorld, line: str, when: str) -> None:
    """The winner is applied once, and nothing is left behind: no process, no worktree, no file."""
    before = world.look()
    world.start_daemon(pause_at=f"{when} {line}")
    race = world.race("demo", "understudy", test=TEST, apply=True)
    daemon = world.daemons[-1]
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {when} {line}")
    world.kill_daemons()
    world.start_daemon()
    if world.show(race)["resumable"]:
        world.ask("race.resume", race=race, env=world.environ)
    view = world.wait_for_race(race, "applied")
    assert (view["winner"], view["applied"]) == ("2-understudy", "2-understudy"), world.tell(race)
    assert world.read("shed.txt") == RED
    wait_until(lambda: all(is_daemons(text) for text in world.processes().values()), "nobody works")
    world.ask("race.clean", race=race)
    assert world.look()[1:] == before[1:]


def test_a_daemon_that_dies_under_a_watched_race_is_replaced(world: RaceWorld) -> None:
    """Whoever looks at the table need not know that there is a daemon."""
    world.start_daemon()
    watching = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "race", *AGENTS, "paint", "--test", f"sleep 1; {TEST}"],
        cwd=world.project,
        env={**world.environ, "PYTHONPATH": CHECKOUT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: find_begun(world) != "", "it began")
    race = find_begun(world)
    wait_until(
        lambda: any(one["state"] in {"running", "testing"} for one in world.runners(race)), "somebody runs"
    )
    os.kill(world.daemons[-1].pid, signal.SIGKILL)
    out, err = watching.communicate(timeout=180)
    assert (watching.returncode, err) == (0, "")
    assert "The winner is 2-understudy." in out


def _end_at_the_request(listening: socket.socket) -> None:
    """A daemon that greets its client, and is killed as soon as that asks for something."""
    client, _ = listening.accept()
    with client, client.makefile("rb") as lines:
        hello = {"id": None, "ok": True, "version": WIRE_VERSION, "daemon": __version__, "pid": os.getpid()}
        lines.readline()
        client.sendall(render_line(hello))
        lines.readline()


def test_who_begins_a_race_as_the_daemon_is_killed_is_told_to_go_on_with_it(world: RaceWorld) -> None:
    """The advice was to try again, and a second race at the same task began."""
    os.makedirs(world.folders.runtime, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor(1) as threads:
        listening.bind(world.folders.daemon_socket)
        listening.listen()
        killed = threads.submit(_end_at_the_request, listening)
        done = command(world, "race", *AGENTS, "paint")
        killed.result(timeout=60)
    assert (done.returncode, done.stdout) == (69, "")
    assert "the daemon went away" in done.stderr
    assert "agent-relay race resume" in done.stderr


def test_a_removal_killed_at_its_beginning_is_finished_by_the_next_daemon(world: RaceWorld) -> None:
    """A half removed race must not need a person to finish it."""
    before = world.look()
    world.start_daemon(pause_at="after race.cleaning")
    race = world.race("demo", "understudy", test=TEST)
    world.wait_for_race(race, "scored")
    asking = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "race", "clean"],
        cwd=world.project,
        env={**world.environ, "PYTHONPATH": CHECKOUT},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: is_stopped(world.daemons[-1].pid), "the daemon froze")
    world.kill_daemons()
    asking.wait(timeout=120)
    world.start_daemon()
    wait_until(lambda: os.listdir(world.folders.races) == [], "the race is gone")
    assert world.look() == before


def test_two_races_at_once_in_one_repository_do_not_meet(world: RaceWorld) -> None:
    """Each has its own branches, trees, sessions and store."""
    before = world.look()
    world.start_daemon()
    one = world.race("demo", "understudy", test=TEST)
    two = world.race("understudy", "extra", test=TEST)
    assert world.wait_for_race(one, "scored")["winner"] == "2-understudy"
    assert world.wait_for_race(two, "scored")["winner"] == "1-understudy"
    done = command(world, "race", "clean", "--all")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    assert world.look() == before


def test_the_example_runs_as_it_stands(world: RaceWorld) -> None:
    """It is the first thing somebody copies."""
    done = subprocess.run(
        [os.path.join(CHECKOUT, "examples", "race.sh")],
        env={**world.environ, "PYTHONPATH": CHECKOUT, "AGENT_RELAY": f"{sys.executable} -m agent_relay"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "The winner is 1-demo." in done.stdout
    assert " M shed.txt\n?? notes.txt\n" in done.stdout


def test_a_race_under_way_is_shown_and_stopped_from_another_terminal(world: RaceWorld) -> None:
    """What one terminal began, another can look at, end and remove."""
    world.play(demo=[{"do": [{"edit": "shed.txt", "text": RED}, {"wait_s": 600}]}])
    world.start_daemon()
    race = world.race("demo", "understudy", test=TEST)
    wait_until(lambda: world.runners(race)[0]["files"] == 1, "the first runner's change is seen")
    shown = command(world, "race", "show")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"Race {race} (running): paint the shed" in shown.stdout
    assert "resume" not in shown.stdout
    refused = command(world, "race", "clean")
    assert (refused.returncode, refused.stderr.splitlines()[1]) == (
        2,
        "  Stop it first: agent-relay race stop",
    )
    stopped = command(world, "race", "stop")
    assert stopped.stdout == f"Race {race} has stopped. Go on: agent-relay race resume {race}\n"
    assert f"Go on: agent-relay race resume {race}" in command(world, "race", "show").stdout
    early = command(world, "race", "diff", "--runner", "demo")
    assert (early.returncode, "1-demo has not come to an end yet" in early.stderr) == (2, True)
    unknown = command(world, "race", "diff", "--runner", "nobody")
    assert unknown.stderr.splitlines()[1] == "  There are: 1-demo, 2-understudy"
    assert command(world, "race", "clean").stdout == f"Race {race} is gone.\n"
