"""Races in a real daemon, with scripted agents in real worktrees, and whatever goes wrong meanwhile."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from tests.support.deleting import delete_folder
from tests.support.race_world import BLUE, RED, SLOW, TEST, VERY_RED, RaceWorld, edit, race_world
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}


@pytest.fixture
def world() -> Iterator[RaceWorld]:
    """A dirty repository, three agents, no daemon yet."""
    with race_world() as made:
        yield made


def race_over(world: RaceWorld, *agents: str, **wish: object) -> tuple[str, dict[str, object]]:
    """A race that is scored, and its view; its daemon is started for it."""
    if not world.daemons:
        world.start_daemon()
    race = world.race(*agents, **wish)
    return race, world.wait_for_race(race, "scored")


def test_a_race_that_is_stopped_while_git_makes_a_worktree_has_stopped_when_git_has(world: RaceWorld) -> None:
    """Who goes on at once must not make a worktree where git of the race before still makes it."""
    git = shutil.which("git")
    slow = Path(world.folder, "bin", "git")
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\ncase " $* " in *" worktree add "*) sleep 3;; esac\nexec {git} "$@"\n')
    slow.chmod(0o755)
    world.environ["PATH"] = f"{slow.parent}:{world.environ['PATH']}"
    world.start_daemon()
    race = world.race("demo", "understudy", test=TEST, apply=True)
    wait_until(lambda: "worktree add" in " ".join(world.processes().values()), "git makes a worktree")
    world.ask("race.stop", race=race)
    assert "worktree add" not in " ".join(world.processes().values())
    world.ask("race.resume", race=race, env=world.environ)
    world.wait_for_race(race, "applied")
    assert world.read("shed.txt") == RED


@pytest.mark.size("test")
def test_what_was_changed_here_meanwhile_is_not_overwritten(world: RaceWorld) -> None:
    """The race stays decided: the user looks at the diff and applies it when it fits."""
    race, _ = race_over(world, "demo", "understudy", test=TEST)
    world.write("shed.txt", "one\ntwo, mine\nthree\nfour\nfive\n")
    answer = world.ask("race.apply", race=race)
    assert answer["why"] == "these were changed here since the race began, in the same lines: shed.txt"
    assert world.read("shed.txt") == "one\ntwo, mine\nthree\nfour\nfive\n"
    world.write("shed.txt", "one\ntwo\nthree\nfour\nfive\nsix, mine\n")
    assert world.ask("race.apply", race=race, runner=1)["why"] == ""
    assert world.read("shed.txt") == f"{VERY_RED}six, mine\n"


def test_a_runner_at_its_limit_fails_over_in_its_own_worktree(world: RaceWorld) -> None:
    """A race is as much work as any other: a limit must not decide it."""
    world.play(
        demo=[{"when": "shed", "do": [LIMIT]}],
        understudy=[{"when": "handoff-context", "do": [{"edit": "shed.txt", "text": RED}, {"say": "done"}]}],
        extra=edit("shed.txt", BLUE),
    )
    race, view = race_over(world, "demo", "extra", test=TEST)
    one, _ = world.runners(race)
    assert (view["winner"], one["at_work"], one["how"]) == ("1-demo", "understudy", "finished")


def test_a_runner_that_takes_too_long_is_ended_and_judged_by_what_it_has(world: RaceWorld) -> None:
    """Nobody waits for ever for the slowest; half of its work may be the best there is."""
    slow = [{"do": [{"edit": "shed.txt", "text": RED}, {"wait_s": 600}]}]
    world.play(demo=slow, understudy=edit("shed.txt", BLUE))
    race, view = race_over(world, "demo", "understudy", test=TEST, max_time_s=60)
    one, two = world.runners(race)
    assert (one["how"], one["why"], one["test"]) == ("timed-out", "not done within 60 s", "passed")
    assert (two["how"], two["test"], view["winner"]) == ("finished", "failed", "1-demo")


def test_a_test_that_hangs_is_ended_with_all_it_started(world: RaceWorld) -> None:
    """A development server that a test forgot must not outlive the race, whatever session it fled to."""
    command = "setsid sleep 987 & exec sleep 986"
    race, view = race_over(world, "demo", "understudy", test=command, test_limit_s=2)
    assert view["winner"] == ""
    assert [one["test"] for one in world.runners(race)] == ["failed", "failed"]
    assert "test not done within 2 s" in str(world.runners(race)[0]["reason"])
    wait_until(lambda: "sleep 98" not in " ".join(world.processes().values()), "all of it has ended")


def test_a_race_of_agents_that_rest_already_is_over_at_once(world: RaceWorld) -> None:
    """Nobody is asked, and nobody is asked again and again."""
    limited: list[dict[str, object]] = [{"again": True, "do": [LIMIT]}]
    world.play(demo=limited, understudy=limited, extra=limited)
    for _ in range(2):
        race, _view = race_over(world, "demo", "understudy", test=TEST)
        assert [one["how"] for one in world.runners(race)] == ["limited", "limited"]
        assert "The first reset is at " in str(world.runners(race)[0]["why"])


def test_a_worktree_removed_by_hand_costs_that_runner_only(world: RaceWorld) -> None:
    """The others go on, and cleaning still works."""
    before = world.look()
    world.play(demo=SLOW)
    world.start_daemon()
    race = world.race("demo", "understudy", test=TEST, max_time_s=60)
    wait_until(lambda: world.runners(race)[0]["state"] == "running", "the first runner works")
    delete_folder(str(world.runners(race)[0]["tree"]))
    view = world.wait_for_race(race, "scored")
    one, _ = world.runners(race)
    assert (one["how"], one["why"], one["files"]) == ("lost", "its worktree was removed", 0)
    assert view["winner"] == "2-understudy"
    world.ask("race.clean", race=race)
    assert world.look() == before


@pytest.mark.size("test")
def test_what_cannot_be_raced_is_refused_and_nothing_is_made(world: RaceWorld) -> None:
    """A refusal after half of the worktrees would have to be tidied up by hand."""
    world.start_daemon()
    bare, empty = (str(Path(world.folder, name)) for name in ("no-repository", "no-commits"))
    os.mkdir(bare)
    os.mkdir(empty)
    world.git("init", "-q", cwd=empty)
    both = ("demo", "understudy")
    accepted = []
    for agents, wish in (
        (("demo",), {}),
        (("demo", "nobody"), {}),
        (both, {"task": " "}),
        (both, {"cwd": empty}),
        (both, {"cwd": bare}),
    ):
        with contextlib.suppress(RelayError):
            world.race(*agents, **wish)
            accepted.append((agents, wish))
    assert accepted == []
    assert not os.path.exists(world.folders.races)


@pytest.mark.size("test")
def test_what_is_asked_of_a_race_at_the_wrong_time_is_refused(world: RaceWorld) -> None:
    """Removing a race under way would pull the ground from under its runners."""
    world.play(demo=SLOW, understudy=SLOW)
    world.start_daemon()
    race = world.race("demo", "understudy")
    wait_until(lambda: world.runners(race)[0]["state"] == "running", "the first runner works")
    for op in ("race.clean", "race.apply"):
        with pytest.raises(WrongUseError, match="still under way"):
            world.ask(op, race=race)
    world.ask("race.stop", race=race)
    with pytest.raises(WrongUseError, match="not decided yet"):
        world.ask("race.apply", race=race)
    with pytest.raises(WrongUseError, match="has not come to an end"):
        world.ask("race.apply", race=race, runner=1)
    with pytest.raises(WrongUseError, match="no runner 3"):
        world.ask("race.apply", race=race, runner=3)
    for op in ("race.show", "race.clean", "race.resume"):
        for name in ("01ARZ3NDEKTSV4RRFFQ69G5FAA", "../../etc"):
            with pytest.raises(WrongUseError, match="there is no race"):
                world.ask(op, race=name)


def test_a_secret_in_the_test_command_is_used_and_kept_nowhere(world: RaceWorld) -> None:
    """The journal of a race is a file like any other; its command runs as it was said all the same."""
    secrets = {
        "github-token": "ghp_" + "Ab3Cd5Ef7Gh9Jk1Lm2Np4Qr6St8Uv0Wx2Yz4",
        "known-secret": "zebra-Lamp-77",
    }
    world.environ |= {"DB_PASSWORD": secrets["known-secret"]}
    world.play(demo=edit("shed.txt", RED))
    counted = [f"test $(printf %s {secret} | wc -c) = {len(secret)}" for secret in secrets.values()]
    race, _ = race_over(world, "demo", "understudy", test=" && ".join([*counted, TEST]))
    assert [runner["test"] for runner in world.runners(race)] == ["passed", "passed"]
    journal = Path(f"{world.folders.races}/{race}/journal.jsonl").read_text("utf-8")
    for kind, secret in secrets.items():
        assert secret[4:] not in journal
        assert f"[redacted: {kind}]" in journal


def test_a_removal_with_a_spoilt_record_keeps_no_daemon_from_starting(world: RaceWorld) -> None:
    """It ended with an internal error each time it was started, over one file of one race."""
    daemon = world.start_daemon()
    race = world.race("demo", "understudy")
    world.wait_for_race(race, "scored")
    world.ask("daemon.stop")
    daemon.wait()
    folder = Path(world.folders.races, race)
    journal = folder / "journal.jsonl"
    last = json.loads(journal.read_text().splitlines()[-1])
    begun = {**last, "n": last["n"] + 1, "event": "race.cleaning", "data": {}}
    journal.write_text(f"{journal.read_text()}{json.dumps(begun)}\n")
    (folder / "applying.json").write_text("[" * 200_000)
    world.start_daemon()
    with pytest.raises(RelayError, match=r"applying\.json is not a record of an interrupted change"):
        world.ask("race.clean", race=race)
    (folder / "applying.json").unlink()
    assert world.ask("race.clean", race=race)["said"] == []
