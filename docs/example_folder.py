"""Write `.agent-relay.example`: a project's folder after one handoff, from a session that is played now.

    python docs/example_folder.py

The agents are scripted; the terminal, the daemon, the limit and the packet are real. What differs from one
machine and one day to the next (ids, times, process numbers, folders) is replaced; a test plays it again and
compares.
"""

import errno
import glob
import json
import os
import re
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from agent_relay.domain.documents.packet_json import parse_packet
from agent_relay.faces.cli.demo import FIRST_PROMPT, GREET, SECOND_PROMPT
from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.packets import list_packets
from agent_relay.system.git.run import ask_git
from tests.house import tree
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld
from tests.support.runs import find_sessions
from tests.support.shells import shell_world

TARGET = os.path.join(tree.CHECKOUT, ".agent-relay.example")
HOME = "/home/ada"
CHECKS = """\
with open("../gate"):
    pass
from greet import greet

asked = {"Ada": "Good day, Ada!", "": "Good day!"}
for name, wanted in asked.items():
    print("ok  " if greet(name) == wanted else "FAIL", repr(name), "->", greet(name))
raise SystemExit(any(greet(name) != wanted for name, wanted in asked.items()))
"""
"""The project's tests wait until they are let go on: so an agent is seen at work before it does the next."""
FILES = {"greet.py": GREET, "checks.py": CHECKS, "Makefile": "test:\n\t@python3 -B checks.py\n"}
DEMO = [
    {
        "when": "polite",
        "do": [
            {
                "plan": [
                    {"text": "greet by name", "status": "in_progress"},
                    {"text": "keep the greeting of nobody as it was", "status": "pending"},
                ]
            },
            {"say": "I'll use an f-string; str.format would hide a missing name."},
            {"edit": "greet.py", "replace": {'return "hello"': 'return f"Good day, {name}!"'}},
            {"run": "make test"},
            {"say": "The name works. One test still fails: greeting nobody should say only 'Good day!'."},
        ],
    },
    {
        "when": "nobody",
        "do": [{"run": "make test", "limit": "You've hit your session limit", "resets_in_s": 7200}],
    },
]
UNDERSTUDY = [
    {
        "when": "handoff-context",
        "do": [
            {"say": "I pick up the greeting of nobody."},
            {"edit": "greet.py", "replace": {'{name}!"': '{name}!" if name else "Good day!"'}},
            {"run": "make test"},
            {"say": "Both tests pass. The task is done."},
        ],
    }
]
IDS = (
    "01M7Y8XZEX7SAVV4H1XBVMVZT6",
    "01M7Y8XZFDA2TM4CJWSD68KYBM",
    "01M7Y8Y1QP9EQ3CCW1MPA6VY0R",
    "01M7Y8Y2BYPWZJ9T89B8AXHSDB",
)
"""What the ids of the session, its first leg, the handoff and its second leg are replaced by."""
NATIVE_IDS = ("5887e6e9-1471-4088-9b9f-b196afa79f67", "47b8c3a4-0824-400c-b9b9-5ad059a4b113")
MADE_UP = {
    "host": "notebook",
    "machine": "0123456789abcdef",
    "boot": "6b6e0a3c-8a53-4c0e-9f0b-2a4f3f0f6f11",
    "pid_namespace": "pid:[4026531836]",
    "runtime": "/run/user/1000/agent-relay",
    "holder_pid": 4711,
    "child_pid": 4712,
    "child_born": 469633,
}
BEGIN = datetime(2026, 11, 21, 5, 23, 11, tzinfo=UTC)
SECOND, RESET = timedelta(seconds=1), timedelta(hours=2)
PLAYS = 5
USUAL = re.compile(
    r"leg\.prompted prompt\.seen leg\.busy .*leg\.prompted prompt\.seen leg\.busy handoff\.delivered "
)
"""Work is seen in an agent's record and on its screen, on a slow machine now and then on the screen first."""
COMMITTED = {f"GIT_{who}_DATE": "2026-11-20T09:00:00+00:00" for who in ("AUTHOR", "COMMITTER")}
_CHECKPOINT = "checkpoint.made"
_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_NATIVE_ID = re.compile(r'"native_id":"([^"]+)"')
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(Z|\+00:00)")


def main() -> None:
    """Write the folder as relay writes it now."""
    with tempfile.TemporaryDirectory() as place:
        # Until it is played whole, the folder of before stays.
        written = os.path.join(place, "written")
        write_example(written)
        shutil.rmtree(TARGET, ignore_errors=True)
        shutil.copytree(written, TARGET, symlinks=True)


def write_example(target: str) -> None:
    """Write below `target`, which is not there yet, what is in a project's folder after one handoff."""
    for _ in range(PLAYS):
        with shell_world(demo=DEMO, understudy=UNDERSTUDY) as world:
            _create_project(world)
            _play(world)
            (session,) = find_sessions(world)
            made = [event.body.name for event in world.events(session)]
            names = " ".join(name for name in made if name != _CHECKPOINT)
            if USUAL.search(names):
                _copy(world, session, target)
                return
    raise AssertionError(f"{PLAYS} plays went another way than usual, the last one so: {names}")


def _create_project(world: RelayWorld) -> None:
    os.mkfifo(f"{world.folder}/gate")
    for name, text in FILES.items():
        _write(f"{world.project}/{name}", text)
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.invalid", "-c", "commit.gpgsign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "A greeting.")):
        ask_git(world.project, words, environ=world.environ | COMMITTED)


def _play(world: RelayWorld) -> None:
    """Play a task, a limit in its second turn and a successor that ends it, step by step."""
    words = [sys.executable, "-m", "agent_relay", "agent", "demo"]
    terminal = Terminal(words, env=world.environ, cwd=world.project)

    def wait_for(events: dict[str, int], screen: str) -> None:
        """Return once the journal has each of `events` so often, and the screen shows `screen`."""
        terminal.wait_until(lambda: _has(world, events), f"the journal has {events}")
        terminal.wait_for(screen)

    wait_for({"leg.ready": 1}, r"ready \| demo")
    terminal.send(f"{FIRST_PROMPT}\r")
    wait_for({"leg.busy": 1}, r"busy \| demo")
    terminal.wait_until(lambda: _let_go_on(world), "the tests of the first turn run")
    wait_for({"leg.ready": 2}, r"still fails[\s\S]*ready \| demo")
    terminal.send(f"{SECOND_PROMPT}\r")
    wait_for({"leg.busy": 2}, r"busy \| demo")
    terminal.wait_until(lambda: _let_go_on(world), "the tests of the second turn run")
    wait_for({"handoff.confirmed": 1, "leg.busy": 3}, r"busy \| understudy")
    terminal.wait_until(lambda: _let_go_on(world), "the tests of the successor run")
    wait_for({"leg.ready": 4}, r"The task is done[\s\S]*ready \| understudy")
    terminal.send("/quit\r")
    terminal.wait_until(lambda: _has(world, {"session.ended": 1}), "the session ends")
    terminal.close()


def _has(world: RelayWorld, events: dict[str, int]) -> bool:
    names = [event.body.name for session in find_sessions(world) for event in world.events(session)]
    return all(names.count(name) >= count for name, count in events.items())


def _let_go_on(world: RelayWorld) -> bool:
    """Let whoever waits at the gate go on; return whether somebody did."""
    try:
        os.close(os.open(f"{world.folder}/gate", os.O_WRONLY | os.O_NONBLOCK))
    except OSError as problem:
        if problem.errno != errno.ENXIO:
            raise
        return False
    return True


def _copy(world: RelayWorld, session: str, target: str) -> None:
    """Write the folder anew below `target`, with everything replaced that no two plays have in common."""
    source = f"{world.project}/.agent-relay"
    journal = _leave_out_checkpoints(_read(f"{source}/sessions/{session}/journal.jsonl"))
    ((_, _, place),) = list_packets(f"{source}/sessions/{session}")
    document, text = _read(place), _read(f"{place.removesuffix('.json')}.md")
    told = json.loads(document)
    moments = _find_moments(world, session, told["created_at"])
    ids = dict(zip(dict.fromkeys(_ULID.findall(journal)), IDS, strict=True))
    native_ids = dict(zip(dict.fromkeys(_NATIVE_ID.findall(journal)), NATIVE_IDS, strict=True))

    def replace(text: str) -> str:
        text = text.replace(world.project, f"{HOME}/project").replace(world.home, HOME)
        text = _ULID.sub(lambda found: ids[found[0]], text)
        for old, new in native_ids.items():
            text = text.replace(old, new)
        return _MOMENT.sub(lambda found: f"{moments[_parse(found[0])].isoformat()[:-6]}{found[1]}", text)

    folder = f"{target}/sessions/{IDS[0]}"
    os.makedirs(folder)
    for name in ("agent-relay.json", ".gitignore"):
        shutil.copyfile(f"{source}/{name}", f"{target}/{name}")
    moved = json.loads(replace(document))
    seal = moved.pop("published")["document"]
    packet = publish_packet(folder, parse_packet(moved), replace(text))
    for key, value in MADE_UP.items():
        journal = re.sub(rf'"{key}":(?:"[^"]*"|\d+)', f'"{key}":{json.dumps(value)}', journal)
    _write(f"{folder}/journal.jsonl", replace(journal).replace(seal, packet.fingerprint))


def _leave_out_checkpoints(journal: str) -> str:
    """Return the journal without them: they are made beside all else, so that their places differ."""
    lines = [line for line in journal.splitlines(keepends=True) if f'"event":"{_CHECKPOINT}"' not in line]
    numbered = (re.sub(r'"n":\d+', f'"n":{number}', line, count=1) for number, line in enumerate(lines, 1))
    return "".join(numbered)


def _find_moments(world: RelayWorld, session: str, created_at: str) -> dict[datetime, datetime]:
    """Return what each moment told of is replaced by.

    An event of the journal comes a second after the one before. What agents wrote down stands half a second
    before they are seen at work: which of two programs was the earlier by a millisecond is left to chance.
    """
    moments: dict[datetime, datetime] = {}
    busy = []
    told = [event for event in world.events(session) if event.body.name != _CHECKPOINT]
    for number, event in enumerate(told):
        moments[event.at] = BEGIN + number * SECOND
        if event.body.name == "leg.busy":
            busy.append(moments[event.at])
        if event.body.name == "handoff.stopped":
            moments[_parse(created_at)] = moments[event.at] + SECOND / 2
    for agent in ("demo", "understudy"):
        (place,) = glob.glob(f"{world.home}/.demo-agent/{agent}/*.jsonl")
        at = BEGIN
        for row in map(json.loads, _read(place).splitlines()):
            at = busy.pop(0) - SECOND / 2 if row["type"] == "prompt" else at + SECOND / 50
            moments[_parse(row["at"])] = at
            if row["type"] == "limit":
                moments[datetime.fromtimestamp(row["resets_at"], UTC)] = at + RESET
    return moments


def _parse(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


if __name__ == "__main__":
    main()
