"""Criteria that are commands: relay runs them, with consent, within limits, and leaves nothing behind."""

import json
import os
import pwd
import shlex
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import CHECK_VARIABLE, LEG_VARIABLE
from agent_relay.system.processes import find_marked
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import wait_until
from tests.support.seats import run, seat

pytestmark = pytest.mark.size("every")

POSE = """
import os, sys
from agent_relay.client.autostart import ask_daemon
from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.folders import get_folders

session, handoff, project = sys.argv[1:]
folders = get_folders()
try:
    words = {"verdict": "completed", "run_proposed": True, "env": {}}
    ask_daemon(folders, "handoff.close", session=session, handoff=handoff, **words)
except RelayError as error:
    print(error.sentence, flush=True)
env = dict(os.environ)
ask_daemon(folders, "open", agent="demo", session=session, cwd=project, env=env, check=["touch it"])
"""


def hand_over(world: WorkingWorld, *checks: str, **more: object) -> tuple[str, str]:
    """A session whose understudy works under these commands; the session and the handoff."""
    session = world.begin()
    world.open("understudy", session=session, check=list(checks), **more)
    return session, world.wait_handed_over(session).done[0].id


def close(world: WorkingWorld, session: str, handoff: str, **more: object) -> dict[str, object]:
    words = {"verdict": "completed", "env": world.environ, **more}
    return world.ask("handoff.close", session=session, handoff=handoff, **words)


@pytest.mark.size("test")
def test_a_command_is_run_in_the_tree_and_decides(world: WorkingWorld) -> None:
    """What a successor says of its tests is its word; what relay ran is evidence."""
    session, handoff = hand_over(world, "test -f door.txt || { echo no door; exit 3; }")
    done = run(world, "handoff", "complete", handoff)
    assert (done.status, done.err) == (1, "")
    assert "relay: run: exit status 3 after" in done.out
    assert "stays open" in done.out
    shown = run(world, "handoff", "show", handoff).out
    assert "    no door" in shown
    assert "working" in shown
    Path(f"{world.project}/door.txt").write_text("a door\n", "utf-8")
    words = ("--completed", "the door", "--blocker", "access=no key=the key", "--next", "paint it")
    done = run(world, "handoff", "complete", handoff, *words, "--met", "it shines=looked at it", "--json")
    assert (done.status, done.err) == (0, "")
    answer = json.loads(done.out)
    assert (answer["closed"], [one["verdict"] for one in answer["criteria"]]) == (True, ["met", "met"])
    view = json.loads(run(world, "handoff", "show", handoff, "--json").out)
    assert (view["status"], view["result"]["completed"], view["result"]["suggested_next"]) == (
        "completed",
        ["the door"],
        "paint it",
    )
    assert view["result"]["blockers"] == [{"kind": "access", "text": "no key", "requires": "the key"}]
    assert [(one["criterion"], one["kind"], one["by"]) for one in view["criteria"]][1:] == [
        ("it shines", "reported", "")
    ]
    assert "2 of 2 criteria met" in run(world, "handoff", "history").out
    assert json.loads(run(world, "handoff", "list", "--all", "--for", "demo", "--json").out) == {
        "handoffs": []
    }
    listed = json.loads(run(world, "handoff", "list", "--all", "--for", "understudy", "--json").out)
    assert [one["handoff"] for one in listed["handoffs"]] == [handoff]
    assert world.session(session).closed == (handoff,)


def test_who_asked_and_who_judged_is_recorded(world: WorkingWorld) -> None:
    """Weeks later nobody remembers whether it was a person who completed it, or a script."""
    session, handoff = hand_over(world, "true")
    name = pwd.getpwuid(os.getuid()).pw_name
    assert run(world, "handoff", "complete", handoff).status == 0
    words = ("handoff", "show", handoff)
    view = json.loads(run(world, *words, "--json").out)
    assert view["asked_by"]["user"] == name
    assert view["judged_by"] == {"agent": "", "user": name, "via": "program"}
    for shown in (run(world, *words).out, run(world, "handoff", "history").out):
        assert f"judged by {name} (a program without a terminal)" in shown
    world.open("demo", session=session, expect=["a door"])
    done = world.wait_for(session, lambda found: len(found.done) == 2, "the first agent is back")
    with seat(world, "handoff", "fail", done.done[-1].id) as person:
        assert person.wait_for_end() == 0
    listed = json.loads(run(world, "handoff", "history", "--json").out)["handoffs"]
    assert listed[-1]["judged_by"] == {"agent": "", "user": name, "via": "terminal"}


@dataclass(frozen=True)
class Shared:
    """A handoff that stays as it is, for tests that share it."""

    world: WorkingWorld
    session: str
    handoff: str


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    """The understudy works under one command."""
    with working_world() as world:
        yield Shared(world, *hand_over(world, "true"))


def test_half_a_pair_is_refused(shared: Shared) -> None:
    """A criterion without how it was checked is no evidence."""
    world, handoff = shared.world, shared.handoff
    for words in (("--met", "1"), ("--unmet", "1="), ("--blocker", "access")):
        done = run(world, "handoff", "complete", handoff, *words)
        assert (done.status, done.out, "needs both halves of" in done.err) == (2, "", True)


def test_a_command_an_agent_named_is_run_only_if_a_person_agrees(world: WorkingWorld) -> None:
    """An agent may ask for anything: that it is a test is its own word."""
    trap = f"touch {world.project}/trap"
    session, handoff = hand_over(world, trap, env={**world.environ, LEG_VARIABLE: "L"}, accept=["it opens"])
    assert world.session(session).done[0].terms.proposed_checks == (trap,)
    for more in ({"run_proposed": True}, {"anyway": True}):
        with pytest.raises(WrongUseError, match="may not use --anyway or --run-proposed"):
            close(world, session, handoff, by="understudy", **more)
    said = {"criteria": [{"criterion": "1", "met": False, "how": "it is stuck"}]}
    assert close(world, session, handoff, by="understudy", report=said)["closed"] is False
    assert "a command an agent proposed" in run(world, "handoff", "show", handoff).out
    assert not os.path.exists(f"{world.project}/trap")
    assert close(world, session, handoff, run_proposed=True, anyway=True)["closed"] is True
    assert os.path.exists(f"{world.project}/trap")


def test_an_agent_that_clears_its_environment_is_still_an_agent(tmp_path: Path) -> None:
    """It is told by its process, also if it left its terminal, its session and its parent."""
    script = f"{tmp_path}/pose.sh"
    plays = [{"again": True, "do": [{"run": f"setsid -f env -i sh {script}"}, {"say": "posed"}]}]
    with working_world(understudy=plays) as world:
        session, handoff = hand_over(world, "false", accept=["it opens"])
        Path(f"{tmp_path}/pose.py").write_text(POSE, "utf-8")
        words = [f"{name}={value}" for name, value in world.environ.items()]
        pose = [sys.executable, f"{tmp_path}/pose.py", session, handoff, world.project]
        # Whoever started it is gone before it asks.
        line = f"sleep 0.5; exec {shlex.join(['env', *words, *pose])} > {tmp_path}/said 2>&1"
        Path(script).write_text(line, "utf-8")
        world.say(session, "pose as a person")
        done = world.wait_for(
            session, lambda found: len(found.done) + (found.handoff is not None) > 1, "it has posed"
        )
        said = (tmp_path / "said").read_text("utf-8")
        assert said == "understudy may not use --anyway or --run-proposed\n"
        history = json.loads(run(world, "handoff", "history", "--json").out)["handoffs"]
        assert history[-1]["asked_by"]["via"] == "agent"
        terms = (*done.done, *((done.handoff,) if done.handoff is not None else ()))[-1].terms
        assert (terms.checks, terms.proposed_checks) == ((), ("touch it",))
        assert close(world, session, handoff, anyway=True)["closed"] is True, "a person may"


def test_a_command_has_a_time_limit_and_leaves_nothing_behind(world: WorkingWorld) -> None:
    """It may start a server, leave its session and never end; nor does it outlive a killed daemon.

    The next daemon may not come for days: the handoff is still open then.
    """
    session, handoff = hand_over(world, "setsid sleep 1000 & sleep 1000")
    answer = close(world, session, handoff, check_limit_s=1)
    assert answer["closed"] is False
    assert [one["how"] for one in answer["criteria"]] == ["run: not done within 1 s"]
    assert find_marked(CHECK_VARIABLE, handoff) == []
    failures = list[str]()

    def judge() -> None:
        try:
            close(world, session, handoff, check_limit_s=600)
        except RelayError as error:
            failures.append(error.sentence)

    judging = threading.Thread(target=judge)
    judging.start()
    wait_until(lambda: find_marked(CHECK_VARIABLE, handoff) != [], "the command runs")
    with pytest.raises(WrongUseError, match="being checked already"):
        close(world, session, handoff)
    cancelled = world.ask("handoff.checks.cancel", session=session, handoff=handoff)
    assert cancelled["cancelled"] is True
    judging.join()
    assert failures == [f"checking handoff {handoff} was cancelled"]
    assert find_marked(CHECK_VARIABLE, handoff) == []
    judging = threading.Thread(target=judge)
    judging.start()
    wait_until(lambda: len(find_marked(CHECK_VARIABLE, handoff)) > 1, "the command runs")
    world.kill_daemons()
    judging.join()
    wait_until(lambda: find_marked(CHECK_VARIABLE, handoff) == [], "nothing of it is left")
    assert world.session(session).closed == ()


def test_what_is_printed_is_bounded_cleaned_and_without_secrets(world: WorkingWorld) -> None:
    """The journal is read by people who ask for help with it."""
    key = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"
    printing = f"head -c 9000000 /dev/zero | tr '\\0' x; printf '\\n\\033[2J{key[:10]}%s\\n' {key[10:]}"
    session, handoff = hand_over(world, printing)
    close(world, session, handoff)
    view = json.loads(run(world, "handoff", "show", handoff, "--json").out)
    (criterion,) = view["criteria"]
    assert len(criterion["output"]) <= 2000
    assert criterion["output"].endswith("x\n[redacted: anthropic-key]")
    assert key not in world.path(session, "journal.jsonl").read_text("utf-8")


def test_a_report_that_says_too_little_or_too_much_is_refused(shared: Shared) -> None:
    """Each with what to do about it, and nothing journalled."""
    for report, why in (
        ({"criteria": [{"criterion": "1", "met": True, "how": " "}]}, "lacks how it was checked"),
        ({"blockers": [{"kind": "mood", "text": "x"}]}, "there is no kind of blocker 'mood'"),
        ({"completed": ["x"] * 21}, "--completed takes at most 20 texts"),
        ({"suggested_next": "x" * 2001}, "--next takes at most 20 texts"),
        ({"criteria": [{"criterion": "9", "met": True, "how": "x"}]}, "there is no criterion 9"),
    ):
        with pytest.raises(WrongUseError, match=why):
            close(shared.world, shared.session, shared.handoff, report=report)
    assert "handoff.closed" not in shared.world.names(shared.session)


def test_what_the_successor_did_with_its_packet_is_said(shared: Shared) -> None:
    """Of an ordinary handoff, from the successor's own record; nothing is planted."""
    world, session, handoff = shared.world, shared.session, shared.handoff
    view = json.loads(run(world, "handoff", "show", handoff, "--json").out)
    assert view["packet_use"]["events"] is None
    assert (view["packet_use"]["commands_run"], view["packet_use"]["recalls"]) == (0, 0)
    assert "packet used: 0 of 0 named files read again" in run(world, "handoff", "show", handoff).out
    rows = json.loads(run(world, "metrics", session, "--by", "handoff", "--json").out)["rows"]
    lane = "read the packet: it had no conversation here"
    told = {**view["packet_use"], "lane": lane, "text": f"{lane}; {view['packet_use']['text']}"}
    assert [(row["key"], row["handoffs"], row["packet_use"]) for row in rows] == [(handoff, 1, told)]
    assert "how successors used their packets" in run(world, "metrics", session, "--by", "handoff").out
    (told,) = json.loads(run(world, "handoff", "history", "--json").out)["handoffs"]
    assert told["packet_use"] == view["packet_use"]


def test_what_the_target_produces_is_checked_first_and_whose_commands_they_are(world: WorkingWorld) -> None:
    """The screenplay's agents leave a record and write no documents.

    Switching agents takes no commands from people: whoever sends one with it is a program.
    """
    session = world.begin()
    env = world.environ
    assert world.ask("handoff.plan", session=session, env=env, needs=["record"])["successor"] == "understudy"
    plan = world.ask("handoff.plan", session=session, env=env, needs=["document"])
    assert plan["successor"] == ""
    assert "its adapter does not declare document" in str(plan["agents"])
    view = json.loads(run(world, "handoff", "plan", "--json").out)
    assert view["estimate"] == {"takeover_s": None, "work_s": None, "takeovers": 0, "works": 0}
    assert "Estimate until it works: unknown (0 made)" in run(world, "handoff", "plan").out
    world.ask("use", session=session, agent="understudy", check=["touch it"])
    terms = world.wait_handed_over(session).done[0].terms
    assert (terms.checks, terms.proposed_checks) == ((), ("touch it",))
