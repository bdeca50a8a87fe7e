"""A relay world whose project is a repository in the middle of work, with three scripted agents that race."""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from agent_relay.race.journal import list_races, read_race
from tests.support.person import Person
from tests.support.relay_world import CHECKOUT, RelayWorld, relay_world, wait_until
from tests.support.seats import Done, run, seat

AGENTS = ("demo", "understudy", "extra")
TEST = "sh check.sh"
_CONFIG = "[user]\nname=A\nemail=a@example.invalid\n[init]\ndefaultBranch=main\n"
_LINES = "one\ntwo\nthree\nfour\nfive\n"
RED = "one\ntwo, red\nthree\nfour\nfive\n"
VERY_RED = "one\ntwo, very red\nthree\nfour, too\nfive\n"
BLUE = "one\ntwo, blue\nthree\nfour\nfive\n"

Row = dict[str, object]
SLOW: list[Row] = [{"when": "paint", "do": [{"wait_s": 600}]}]


def edit(path: str, text: str, *more: Row) -> list[Row]:
    """A screenplay in which the task is one edit, then `more`."""
    return [{"do": [{"edit": path, "text": text}, *more, {"say": "done"}]}]


class RaceWorld(RelayWorld):
    """A user's machine with a dirty repository."""

    def git(self, *words: str, cwd: str = "") -> str:
        """What git prints."""
        environ = {**self.environ, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.project, env=environ, capture_output=True, check=True
        )
        return done.stdout.decode("utf-8", "replace")

    def prepare(self) -> None:
        """A repository with a commit, and staged, changed and untracked files; a third agent."""
        with open(f"{self.home}/.gitconfig", "w", encoding="utf-8") as file:
            file.write(_CONFIG)
        self.git("init", "-q")
        self.write("shed.txt", _LINES)
        self.write("check.sh", 'grep -q red shed.txt && test -f "not committed.txt"\n')
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        self.write("not committed.txt", "mine\n")
        self.write("staged.txt", "mine\n")
        self.git("add", "staged.txt")
        self.write("check.sh", 'echo looking; grep -q red shed.txt && test -f "not committed.txt"\n')
        source = os.path.join(CHECKOUT, "adapters", "understudy")
        target = os.path.join(self.folders.config, "adapters", "extra")
        shutil.copytree(source, target)
        for name in ("adapter.toml", "rules.toml"):
            path = os.path.join(target, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                program = os.path.join(CHECKOUT, "adapters", "demo", "agent.py")
                file.write(text.replace("understudy", "extra").replace("../demo/agent.py", program))

    def play(self, **scenes: list[Row]) -> None:
        """What each agent will do."""
        folder = f"{self.folder}/plays"
        os.makedirs(folder, exist_ok=True)
        for name, rows in scenes.items():
            with open(f"{folder}/{name}.json", "w", encoding="utf-8") as file:
                json.dump({"scenes": rows}, file)
        self.environ["DEMO_AGENT_SCREENPLAYS"] = folder

    def write(self, name: str, text: str) -> None:
        """A file of the project."""
        with open(os.path.join(self.project, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name: str) -> str:
        """The same."""
        with open(os.path.join(self.project, name), encoding="utf-8") as file:
            return file.read()

    def look(self) -> tuple[str, ...]:
        """What the user sees of the repository."""
        return (
            self.git("status", "--porcelain=v2", "--branch", "--ignored"),
            self.git("worktree", "list", "--porcelain"),
            self.git("for-each-ref"),
            "\n".join(sorted(os.listdir(f"{self.project}/.git"))),
        )

    def race(self, *agents: str, **wish: object) -> str:
        """The id of a race that has begun."""
        fields = {"cwd": self.project, "env": self.environ, "task": "paint the shed", **wish}
        return str(self.ask("race.begin", agents=list(agents), **fields)["race"])

    def show(self, race: str) -> Row:
        """What the daemon says of a race."""
        return self.ask("race.show", race=race)

    def runners(self, race: str) -> list[Row]:
        """The runners of a race, in the order given."""
        return cast("list[Row]", self.show(race)["runners"])

    def tell(self, race: str) -> str:
        """Why each runner ended as it did, and its session's journal, for a failing test."""
        told = [json.dumps(self.show(race), indent=1)]
        for runner in self.runners(race):
            path = f"{runner['tree']}/.agent-relay/sessions/{runner['session']}/journal.jsonl"
            # One that hangs before its session begins has no journal to tell of.
            with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
                told.append(file.read())
        return "\n".join(told)

    def wait_for_race(self, race: str, *states: str) -> Row:
        """The race once it is in one of these states and nothing is done for it any more."""
        try:
            what = f"the race is {' or '.join(states)}"
            folder = f"{self.folders.races}/{race}"
            # Its journal first: to ask a daemon again and again takes more than the race.
            wait_until(lambda: str(read_race(folder).state) in states, what, limit_s=120)
            wait_until(lambda: not self.show(race)["active"], what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tell(race)}") from None
        return self.show(race)


@contextmanager
def race_world() -> Iterator[RaceWorld]:
    """A world that is gone afterwards, whose second agent would win; no daemon is running yet."""
    with relay_world(order=AGENTS, kind=RaceWorld) as world:
        assert isinstance(world, RaceWorld)
        world.prepare()
        world.play(
            demo=edit("shed.txt", VERY_RED), understudy=edit("shed.txt", RED), extra=edit("shed.txt", BLUE)
        )
        yield world


def command(world: RaceWorld, *words: str) -> Done:
    """How `agent-relay race` with these words ended in the project, without a terminal."""
    return run(world, "race", *words, TZ="UTC")


def find_begun(world: RaceWorld) -> str:
    """The id of the one race whose journal has begun; empty before that."""
    races = [race for race in list_races(world.folders) if read_race(f"{world.folders.races}/{race}")]
    return "".join(races)


@contextmanager
def race_on_terminal(world: RaceWorld) -> Iterator[Person]:
    """A person at whose terminal a slow runner and one that is done race."""
    with seat(world, "race", "demo", "understudy", "paint", "--test", TEST, rows=40, cols=120) as person:
        person.wait_until(
            lambda: bool(re.search("2-understudy.*finished.*passed", person.text())), "a runner is done"
        )
        yield person
