"""A handoff from beginning to end in a folder of a test's choice, under a daemon that tests may share."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent_relay.domain.events.session import Event
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, wait_until

PICKED_UP = "I have read what was handed over."
LIMIT = {"wait_s": 0.1, "limit": "You've hit your session limit", "resets_in_s": 7200}
Scene = Mapping[str, object]


def write_screenplays(folder: str, **scenes: Sequence[Scene]) -> dict[str, str]:
    """The environment in which each agent named plays its `scenes`, and the understudy takes over.

    The understudy says `PICKED_UP` for a packet unless it has scenes of its own.
    """
    os.makedirs(folder, exist_ok=True)
    taking_over = [{"when": "handoff-context", "again": True, "do": [{"say": PICKED_UP}]}]
    for name, played in {"understudy": taking_over, **scenes}.items():
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump({"scenes": played}, file)
    return {"DEMO_AGENT_SCREENPLAYS": folder}


@dataclass(frozen=True)
class Work:
    """One session of a world in a folder: `root` holds its `.agent-relay`."""

    world: RelayWorld
    root: str
    id: str

    def events(self) -> list[Event]:
        """Its journal."""
        return read_events(f"{self.folder}/journal.jsonl")

    @property
    def folder(self) -> str:
        """Where its journal and packets are."""
        return f"{self.root}/.agent-relay/sessions/{self.id}"

    def session(self) -> Session:
        """The session its journal describes."""
        found = fold_events(self.events())
        assert found is not None
        return found

    def wait_for(self, is_so: Callable[[Session], bool], what: str, limit_s: float = 90) -> Session:
        """The session once `is_so`."""
        wait_until(lambda: is_so(self.session()), what, limit_s=limit_s)
        return self.session()

    def leg_folder(self) -> str:
        """The living leg's folder."""
        leg = self.session().living_leg
        assert leg is not None
        return f"{self.world.folders.legs}/{leg.id}"

    def type(self, text: str) -> None:
        """A person types `text` and presses Enter, once the agent is ready."""
        self.wait_for(lambda found: found.state is State.READY, "the agent is ready")
        type_into(self.leg_folder(), text.encode() + b"\r")

    def wait_for_successor(self, agent: str = "understudy", limit_s: float = 90) -> Session:
        """The session once `agent` took its packet, worked on it and is ready again."""
        return self.wait_for(
            lambda found: found.agent == agent and found.handoff is None and found.state is State.READY,
            f"{agent} has taken over",
            limit_s,
        )

    def native_rows(self, leg: int = -1) -> list[dict[str, object]]:
        """The transcript an agent of the session kept, by the number of its leg."""
        found = self.session().legs[leg]
        path = f"{self.world.home}/.demo-agent/{found.agent}/{found.native_id}.jsonl"
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def stop(self) -> None:
        """The session has ended."""
        self.world.ask("session.stop", session=self.id)
        self.wait_for(lambda found: found.state is State.ENDED, "the session has ended")


def open_work(world: RelayWorld, cwd: str, root: str, **fields: object) -> Work:
    """A new session of the demo agent in `cwd`."""
    answer = world.open("demo", cwd=cwd, new=True, **fields)
    return Work(world, root, str(answer["session"]))


def git(folder: str, *words: str | bytes, check: bool = True) -> str:
    """What git prints; nothing of this machine's configuration counts, and nothing is refreshed."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }
    settings = (
        "init.defaultBranch=main",
        "protocol.file.allow=always",
        "gc.auto=0",
        "maintenance.auto=false",
    )
    flags = [word for setting in settings for word in ("-c", setting)]
    done = subprocess.run(
        ["git", *flags, *words], cwd=folder, env=environ, capture_output=True, check=False, timeout=60
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape")
