"""A person at the relay shell, in a terminal of a world of scripted agents."""

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.house import tree
from tests.support.handoffs import write_screenplays
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, relay_world
from tests.support.runs import SCENES, find_sessions

LIMIT_S = 120
UNDERSTUDY = [
    {"when": "handoff-context", "again": True, "do": [{"say": "understudy goes on"}]},
    {"again": True, "do": [{"say": "understudy heard you"}]},
]


class ShellWorld(RelayWorld):
    """A world that closes the terminals of its people."""

    def __init__(self, folder: str, *, project: str = "project", order: tuple[str, ...]) -> None:
        super().__init__(folder, project=project, order=order)
        self.terminals: list[Terminal] = []

    def close(self) -> None:
        """Nobody sits there any more, and whatever is left is killed."""
        for terminal in self.terminals:
            terminal.close()
        super().close()


class ShellPerson:
    """One terminal on which the relay shell runs."""

    def __init__(self, world: RelayWorld, *words: str) -> None:
        self.world = world
        self.terminal = Terminal(Command(words, world.environ, world.project))
        if isinstance(world, ShellWorld):
            world.terminals.append(self.terminal)
        self.wait_for(r"(?m)^>")

    def type(self, line: str, shows: str = "") -> None:
        """The person types `line` and presses Enter; then the screen matches `shows`."""
        self.terminal.send(f"{line}\r")
        if shows:
            self.wait_for(shows)

    def press(self, keys: str, shows: str) -> None:
        """The person presses `keys`; then the screen matches `shows`."""
        self.terminal.send(keys)
        self.wait_for(shows)

    def begin(self, message: str) -> None:
        """The person sends `message`, and the agent has begun with it."""
        self.type(message, shows="I begin")

    def attach(self) -> None:
        """The person opens the agent's own screen."""
        self.type("/attach", shows="ready . demo")

    def turn(self, message: str, *, agent: str = "demo") -> None:
        """The person sends `message`, which the agent answers as it answers any."""
        self.type(message, shows=rf"{agent} > {message}\s+{agent} heard you")
        self.wait_idle()

    def wait_for(self, pattern: str) -> None:
        """The screen matches `pattern`."""
        self.terminal.wait_for(pattern, limit_s=LIMIT_S)

    def wait_idle(self) -> None:
        """No agent works and nothing is painted."""
        self.terminal.wait_quiet(0.3)
        self.terminal.wait_until(lambda: "· working" not in self.screen, "the turn ends", limit_s=LIMIT_S)

    @property
    def screen(self) -> str:
        """What is shown now."""
        return self.terminal.screen

    def session(self) -> str:
        """The project's one session."""
        (found,) = find_sessions(self.world)
        return found


@contextmanager
def shell_world(**plays: Sequence[dict[str, object]]) -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon; `plays` are scenes in place of the usual ones."""
    with relay_world(kind=ShellWorld) as world:
        scenes = {"demo": SCENES, "understudy": UNDERSTUDY, **plays}
        world.environ |= write_screenplays(f"{world.folder}/plays", **scenes)
        world.environ |= {"PYTHONPATH": tree.CHECKOUT, "SHELL": "/bin/sh"}
        world.start_daemon()
        yield world


def list_natives(world: RelayWorld, session: str) -> list[tuple[str, str]]:
    """Agent and native session of every leg, oldest first."""
    return [(leg.agent, leg.native_id) for leg in world.session(session).legs]


def list_prompts(world: RelayWorld, session: str) -> list[str]:
    """The prompts of the session's turns, oldest first."""
    return [event.body.prompt for event in world.events(session) if event.body.name == "turn.begun"]


def list_kept(world: RelayWorld) -> list[str]:
    """The files of what was typed ahead."""
    return glob.glob(f"{world.folders.state}/shell/*/*.json")
