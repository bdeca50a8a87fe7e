"""Two shells of one session, each with messages that wait, when the turn both wait for ends."""

import pytest

from tests.support.relay_world import wait_until
from tests.support.runs import SCENES
from tests.support.shells import ShellPerson, list_prompts, shell_world

pytestmark = pytest.mark.size("test")

SHORT = {"when": "soon", "do": [{"say": "I begin."}, {"wait_s": 4}, {"say": "I end."}]}


def test_every_message_of_both_is_asked_once_and_in_its_shells_own_order() -> None:
    """Both see the session free at the same moment; whoever is second waits again, and is not refused."""
    with shell_world(demo=[SHORT, *SCENES]) as world:
        first = ShellPerson(world)
        first.type("hello")
        first.wait_for("demo heard you")
        first.wait_idle()
        session = first.session()
        second = ShellPerson(world, "resume", session[-8:])
        first.type("soon, please")
        first.wait_for("I begin")
        mine = [f"first {number}" for number in range(4)]
        others = [f"second {number}" for number in range(4)]
        for one, other in zip(mine, others, strict=True):
            first.type(one)
            second.type(other)

        def are_all_asked() -> bool:
            first.terminal.pump(0)
            second.terminal.pump(0)
            return len(list_prompts(world, session)) >= 10

        wait_until(are_all_asked, "all are asked", limit_s=90)
        for person in (first, second):
            person.wait_idle()
            assert "waits:" not in person.screen
            assert "not sent" not in person.screen
        prompts = list_prompts(world, session)
        assert prompts[:2] == ["hello", "soon, please"]
        assert [prompt for prompt in prompts[2:] if prompt in mine] == mine
        assert [prompt for prompt in prompts[2:] if prompt in others] == others
        assert len(prompts) == 10
        first.terminal.close()
        second.terminal.close()
