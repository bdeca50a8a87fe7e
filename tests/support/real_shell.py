"""A person at the relay shell, with the real agents behind it."""

from tests.support.real import World
from tests.support.real_terminal import Terminal, WaitedError
from tests.support.real_work import describe, read_work
from tests.support.relay_world import wait_until

RELAY_KEY = "\x1d"


def open_shell(world: World) -> Terminal:
    """A terminal on which the relay shell waits for the first message."""
    terminal = world.open(world.relay())
    terminal.wait_for(r"(?m)^> *$")
    return terminal


def enter(world: World, terminal: Terminal, line: str, answer: str) -> None:
    """The person types `line`, and the shell shows `answer`, a pattern; the turn is over then."""
    terminal.send(f"{line}\r")
    wait_shown(world, terminal, answer)
    wait_turn_over(world, terminal)


def wait_shown(world: World, terminal: Terminal, pattern: str) -> None:
    """The screen matches `pattern`; a failure tells what relay knew."""
    try:
        terminal.wait_for(pattern)
    except WaitedError as error:
        raise WaitedError(f"{error}\n{describe(world)}") from None


def wait_turn_over(world: World, terminal: Terminal) -> None:
    """Nobody works and nothing waits."""
    terminal.wait_quiet(0.3)
    try:
        terminal.wait_until(
            lambda: "· working" not in terminal.screen and "  waits: " not in terminal.screen,
            "the turn's end",
        )
    except WaitedError as error:
        raise WaitedError(f"{error}\n{describe(world)}") from None


def list_legs(world: World) -> list[tuple[str, str, bool]]:
    """Agent, native session and whether it had no screen, of every leg, oldest first, once all are known."""
    wait_until(lambda: all(leg.native_id for leg in read_work(world).legs), "every leg to be named")
    return [(leg.agent, leg.native_id, leg.headless) for leg in read_work(world).legs]
