"""A whole race as a person sees it: at the command line, on a terminal, and through every kind of crash."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from jsonschema import Draft202012Validator

from agent_relay import __version__
from agent_relay.domain.protocol.wire import WIRE_VERSION, render_line
from tests.support.preloaded import Command, Running
from tests.support.race_world import (
    AGENTS,
    BLUE,
    RED,
    SLOW,
    TEST,
    VERY_RED,
    RaceWorld,
    command,
    edit,
    find_begun,
    race_on_terminal,
    race_world,
)
from tests.support.relay_world import CHECKOUT, is_daemons, is_stopped, wait_until
from tests.support.seats import close_window
from tests.support.sizes import sized


@pytest.fixture
def world() -> Iterator[RaceWorld]:
    """A dirty repository and three agents, the second of which will win."""
    with race_world() as made:
        yield made


def start(world: RaceWorld, *words: str, leads: bool = False) -> Running:
    """`agent-relay race` with these words, under way."""
    return Running(Command(["race", *words], world.environ, world.project), leads=leads)


def wait_until_one_is_done(world: RaceWorld) -> str:
    """The id of the race of two, once the first works on and the second is done."""
    wait_until(lambda: find_begun(world) != "", "the race has begun")
    race = find_begun(world)
    wait_until(lambda: [one["state"] for one in world.runners(race)] == ["running", "tested"], "one is done")
    return race


def wait_until_nobody_works(world: RaceWorld) -> None:
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nobody works")


@pytest.mark.size("test")
def test_a_race_of_three_from_the_first_word_to_the_last(world: RaceWorld) -> None:
    """Before and after, `git status` and `git worktree list` differ by the applied change, nothing else."""
    before = world.look()
    world.start_daemon()
    done = command(world, *AGENTS, "paint the shed red", "--test", TEST)
    assert (done.status, done.err) == (0, "")
    assert "The winner is 2-understudy." in done.out
    assert "1-demo and 2-understudy: shed.txt: both change line 2" in done.out
    assert "1. 2-understudy: test passed, 2 lines in 1 file, " in done.out
    assert len(world.git("worktree", "list").splitlines()) == 4
    assert world.git("status", "--porcelain") == ' M check.sh\nA  staged.txt\n?? "not committed.txt"\n'
    shown = json.loads(command(world, "show", "--json").out)
    assert (shown["winner"], shown["ranking"]) == ("2-understudy", ["2-understudy", "1-demo", "3-extra"])
    reasons = [one["reason"] for one in shown["runners"]]
    assert reasons[0].endswith("; 3-extra failed the test")
    assert reasons[1].endswith("; 2 lines less than 1-demo")
    assert reasons[2].startswith("test failed (exit 1), 2 lines in 1 file, ")
    assert len(shown["overlaps"]) == 3
    with open(f"{world.folders.races}/{shown['race']}/tests/2/output", encoding="utf-8") as file:
        assert file.read() == "looking\n"
    assert "-two\n+two, red\n" in command(world, "diff").out
    assert "-two\n+two, blue\n" in command(world, "diff", "--runner", "extra").out
    assert "1 file changed" in command(world, "diff", "--stat").out
    done = command(world, "apply")
    assert (done.status, done.err) == (0, "")
    assert world.read("shed.txt") == RED
    done = command(world, "clean")
    assert (done.status, done.err) == (0, "")
    status, *rest = world.look()
    assert rest == list(before[1:])
    changed = [line for line in status.splitlines() if line not in before[0].splitlines()]
    assert [line.split()[-1] for line in changed] == ["shed.txt"]
    assert (os.listdir(world.folders.races), os.listdir(world.folders.sessions)) == ([], [])
    assert command(world, "list").out == "There are no races.\n"
    assert command(world, "show").status == 2


def test_json_is_the_result_and_nothing_before_it(world: RaceWorld) -> None:
    """Scripts read it whole; nobody winning is a failure."""
    world.play(demo=edit("shed.txt", BLUE), understudy=edit("other.txt", "x\n"))
    world.start_daemon()
    done = command(world, "demo", "understudy", "paint", "--test", TEST, "--json")
    assert done.status == 1
    view = json.loads(done.out)
    schema = json.loads(command(world, "schema").out)
    Draft202012Validator(schema).validate(view)
    assert (view["state"], view["winner"], view["overlaps"]) == ("scored", "", [])
    assert [one["test_status"] for one in view["runners"]] == [1, 1]
    refused = command(world, "apply")
    assert (refused.status, refused.out) == (2, "")
    assert "no runner won, so there is nothing to apply" in refused.err


def test_applying_again_says_that_it_is_applied_and_every_command_has_json(world: RaceWorld) -> None:
    """A second "0 files" reads like a failure; and a script parses what a person reads."""
    world.start_daemon()
    done = command(world, "demo", "understudy", "paint", "--test", TEST, "--apply")
    assert "2-understudy is applied: 1 file in" in done.out
    said = command(world, "apply")
    told = f"2-understudy is applied already: all its changes are in {world.project}.\n"
    assert (said.status, said.out) == (0, told)
    answer = json.loads(command(world, "apply", "--json").out)
    assert answer == {"files": 0, "runner": "2-understudy", "why": "", "already": True}
    shown = json.loads(command(world, "show", "--json").out)
    race = shown["race"]
    assert (shown["applied"], shown["applied_files"]) == ("2-understudy", 1)
    plain = command(world, "diff").out
    view = json.loads(command(world, "diff", "--json").out)
    assert view == {"race": race, "runner": "2-understudy", "diff": plain}
    cleaned = command(world, "clean", "--json")
    assert json.loads(cleaned.out) == {"races": [{"race": race, "notes": []}]}
    assert json.loads(command(world, "clean", "--all", "--json").out) == {"races": []}


@pytest.mark.size("test")
def test_on_a_terminal_the_table_lives_and_ctrl_c_pauses_the_race(world: RaceWorld) -> None:
    """Whoever presses it wants their machine back, not their race lost: the same runners go on."""
    world.play(demo=SLOW)
    world.start_daemon()
    with race_on_terminal(world) as person:
        person.type(b"\x03", shows="Go on: agent-relay race resume")
        assert person.wait_for_end() == 130
    view = world.show(find_begun(world))
    assert (view["state"], view["active"], view["resumable"]) == ("stopped", False, True)
    assert world.runners(str(view["race"]))[0]["state"] == "stopped"
    wait_until_nobody_works(world)
    world.play(demo=edit("shed.txt", VERY_RED))
    done = command(world, "resume")
    assert (done.status, done.err) == (0, "")
    assert "The winner is 2-understudy." in done.out
    assert len({one["session"] for one in world.runners(str(view["race"]))}) == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_race_that_is_told_to_end_stops_its_runners(world: RaceWorld, number: int, status: int) -> None:
    """A job that is cancelled and a terminal that is closed mean the runners; resume goes on with them."""
    world.play(demo=SLOW)
    world.start_daemon()
    racing = start(world, "demo", "understudy", "paint", "--test", TEST, leads=True)
    race = wait_until_one_is_done(world)
    racing.process.send_signal(number)
    ended = racing.finish()
    assert ended.returncode == status
    assert f"Go on: agent-relay race resume {race}".encode() in ended.stderr
    assert world.show(race)["state"] == "stopped"
    wait_until_nobody_works(world)


def test_a_terminal_that_is_closed_stops_the_race(world: RaceWorld) -> None:
    """Its table can be written nowhere any more."""
    world.play(demo=SLOW)
    world.start_daemon()
    with race_on_terminal(world) as person:
        close_window(person)
        race = find_begun(world)
        wait_until(lambda: world.show(race)["state"] == "stopped", "the race has stopped")
        wait_until_nobody_works(world)
        assert not os.path.exists(world.folders.crashes)


POINTS = (
    "before race.carried",
    "before runner.placed",  # git has made a worktree
    "after SpawnLeg",
    "after runner.testing",
    "after race.applying",
    "before race.applied",  # the change is there
)


@pytest.mark.parametrize("point", sized(POINTS, ["before race.applied"]))
def test_a_race_killed_anywhere_goes_on(world: RaceWorld, point: str) -> None:
    """The winner is applied once, and nothing is left behind: no process, no worktree, no file."""
    before = world.look()
    world.start_daemon(pause_at=point)
    race = world.race("demo", "understudy", test=TEST, apply=True)
    wait_until(lambda: is_stopped(world.daemons[-1].pid), f"the daemon froze {point}")
    world.kill_daemons()
    world.start_daemon()
    if world.show(race)["resumable"]:
        world.ask("race.resume", race=race, env=world.environ)
    view = world.wait_for_race(race, "applied")
    assert (view["winner"], view["applied"]) == ("2-understudy", "2-understudy"), world.tell(race)
    assert world.read("shed.txt") == RED
    wait_until_nobody_works(world)
    world.ask("race.clean", race=race)
    assert world.look()[1:] == before[1:]


def test_a_daemon_that_dies_under_a_watched_race_is_replaced(world: RaceWorld) -> None:
    """Whoever looks at the table need not know that there is a daemon."""
    world.start_daemon()
    watching = start(world, *AGENTS, "paint", "--test", f"sleep 1; {TEST}")
    wait_until(lambda: find_begun(world) != "", "it began")
    race = find_begun(world)
    wait_until(
        lambda: any(one["state"] in {"running", "testing"} for one in world.runners(race)), "somebody runs"
    )
    world.daemons[-1].kill()
    ended = watching.finish()
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"The winner is 2-understudy." in ended.stdout


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
        done = command(world, *AGENTS, "paint")
        killed.result(timeout=60)
    assert (done.status, done.out) == (69, "")
    assert "the daemon went away" in done.err
    assert "agent-relay race resume" in done.err


def test_a_removal_killed_at_its_beginning_is_finished_by_the_next_daemon(world: RaceWorld) -> None:
    """A half removed race must not need a person to finish it."""
    before = world.look()
    world.start_daemon(pause_at="after race.cleaning")
    race = world.race("demo", "understudy", test=TEST)
    world.wait_for_race(race, "scored")
    asking = start(world, "clean")
    wait_until(lambda: is_stopped(world.daemons[-1].pid), "the daemon froze")
    world.kill_daemons()
    asking.finish()
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
    done = command(world, "clean", "--all")
    assert (done.status, len(done.out.splitlines())) == (0, 2)
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
    shown = command(world, "show")
    assert (shown.status, shown.err) == (0, "")
    assert f"Race {race} (running): paint the shed" in shown.out
    assert "resume" not in shown.out
    refused = command(world, "clean")
    assert (refused.status, refused.err.splitlines()[1]) == (2, "  Stop it first: agent-relay race stop")
    stopped = command(world, "stop")
    assert stopped.out == f"Race {race} has stopped. Go on: agent-relay race resume {race}\n"
    assert f"Go on: agent-relay race resume {race}" in command(world, "show").out
    early = command(world, "diff", "--runner", "demo")
    assert (early.status, "1-demo has not come to an end yet" in early.err) == (2, True)
    unknown = command(world, "diff", "--runner", "nobody")
    assert unknown.err.splitlines()[1] == "  There are: 1-demo, 2-understudy"
    world.ask("race.resume", race=race, env=world.environ)
    stopped = command(world, "stop", "--json")
    assert (stopped.status, json.loads(stopped.out)) == (0, {"race": race, "state": "stopped"})
    assert command(world, "clean").out == f"Race {race} is gone.\n"
