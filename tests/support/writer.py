"""An agent that writes handoff documents by a script of the test's: the demo agent with a headless side."""

import glob
import os
import shutil

from agent_relay.domain.state import State
from tests.house import tree
from tests.support.at_work import restart, say
from tests.support.relay_world import RelayWorld, wait_until

PROGRAM = """#!/bin/sh
if [ "$1" = --write ]; then
  . "$HOME/writes.sh"
  exit
fi
exec "$(dirname "$0")/agent.py" "$@"
"""
NARRATIVE = """
[narrative]
args = ["--write", "{{native_id}}", "{{leg_folder}}"]
copy = "{copy}"
limit_s = {limit_s}
env = {{ WRITING = "yes" }}
answer = {{ format = "plain" }}
"""


FRESH = 'fresh_args = ["--write", "{native_id}", "{leg_folder}"]\n'


def add_writer(
    world: RelayWorld, *, copy: str = "", limit_s: float = 120, keys: str = "", fresh: bool = False
) -> None:
    """The user has an agent `writer`, known to a new daemon; `keys` are the key variables it names.

    A `fresh` one writes documents from digests, too.
    """
    folder = f"{world.folders.config}/adapters/writer"
    shutil.copytree(os.path.join(tree.ADAPTERS, "demo"), folder)
    with open(f"{folder}/adapter.toml", encoding="utf-8") as file:
        text = file.read().replace('"demo"', '"writer"').replace("/demo/", "/writer/")
    text = text.replace("./agent.py", "./writer").replace('/demo"', '/writer"')
    if keys:
        text = text.replace("\ntitle =", f'\nkeys = ["{keys}"]\ntitle =', 1)
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as file:
        file.write(text + NARRATIVE.format(copy=copy, limit_s=limit_s) + (FRESH if fresh else ""))
    with open(f"{folder}/writer", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    os.chmod(f"{folder}/writer", 0o700)
    plays = world.environ["DEMO_AGENT_SCREENPLAYS"]
    shutil.copy(f"{plays}/demo.json", f"{plays}/writer.json")
    restart(world)


def let_it_write(world: RelayWorld, script: str) -> None:
    """What the agent's headless side does, in the words of a shell."""
    with open(f"{world.home}/writes.sh", "w", encoding="utf-8") as file:
        file.write(script)


def begin_talk(world: RelayWorld, *, prompts: int = 1) -> str:
    """A session under the writer that answered so many prompts."""
    session = str(world.open("writer")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the writer is ready")
    for number in range(prompts):
        say(world, session, f"prompt {number}")
        world.wait_for(session, lambda found: found.leg is not None and found.leg.was_busy, "a turn began")
        world.wait_for(session, lambda found: found.state is State.READY, "the turn is over")
        wait_until(lambda: _count_turns(world) == number + 1, "the turn is written down")  # noqa: B023 - called at once
    return session


def _count_turns(world: RelayWorld) -> int:
    """How many turns the writer's transcripts hold whole."""
    found = 0
    for path in glob.glob(f"{world.home}/.demo-agent/writer/*"):
        with open(path, encoding="utf-8") as file:
            found += file.read().count('"type": "done"')
    return found
