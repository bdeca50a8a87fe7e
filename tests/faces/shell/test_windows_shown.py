"""What the shell's line says of usage windows while a person works."""

from collections.abc import Iterator

import pytest

from tests.support.relay_world import RelayWorld
from tests.support.shells import ShellPerson, shell_world

pytestmark = pytest.mark.size("test")

READS = [
    {"used": 42, "minutes": 300, "resets_in_s": 40_000},
    {"used": 13, "minutes": 10_080, "resets_in_s": 400_000},
    {"say": "demo heard you"},
]


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine whose first agent tells of its usage windows."""
    with shell_world(demo=[{"again": True, "do": READS}]) as made:
        yield made


def test_the_agents_windows_stand_in_the_line_after_its_first_turn(
    world: RelayWorld, person: ShellPerson
) -> None:
    """One decides by them whether the next task is still for this agent; before it, nothing is known."""
    assert "5 h" not in person.screen
    person.type("hello", shows=r"(?m)^demo .*· 5 h 42 % \(resets .*\) · week 13 %")
    person.type("/use understudy", shows=r"(?m)^understudy$")
    other = ShellPerson(world)
    other.wait_for(r"(?m)^demo · 5 h 42 % \(resets .*\) · week 13 %")
