"""What a shell does while nobody can work: it says so, keeps what was typed, and goes on at the reset."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import LIMIT, SCENES
from tests.support.shells import ShellPerson, list_prompts, shell_world

pytestmark = pytest.mark.size("every")

SOON = {"limit": "You've hit your session limit", "resets_in_s": 30}


@contextmanager
def rest_world(limit: dict[str, object], wishes: str = "") -> Iterator[RelayWorld]:
    """A machine with one agent, which meets `limit` in its first long job."""
    with shell_world(
        demo=[{"when": "long job", "do": [{"say": "I begin."}, {"wait_s": 1}, limit]}, *SCENES]
    ) as world:
        with open(f"{world.folders.config}/config.toml", "w", encoding="utf-8") as file:
            file.write(f'order = ["demo"]\n{wishes}')
        yield world


def test_at_the_first_reset_the_person_is_told_and_asked() -> None:
    """Without a wish nothing is sent by itself, but a line that says until when is not left to grow stale."""
    with rest_world(SOON) as world:
        person = ShellPerson(world)
        person.type("a long job", shows=r"No agent is available\. The first reset is at")
        person.wait_for(r"demo rests until .* 1 not sent \(every agent rests\): Enter sends on")
        person.wait_for("The first reset has passed: Enter sends what waits")
        person.wait_for(r"(?m)^demo · 1 not sent \(the first reset has passed\): Enter sends on")
        person.press("\r", shows=r"(?s)demo > a long job.*demo > a long job\s+I begin")
        assert list_prompts(world, person.session()) == ["a long job", "a long job"]


def test_with_the_wish_it_goes_on_by_itself_and_says_when() -> None:
    """A night's queue does not wait for somebody to press Enter, and stays in the order it was typed."""
    with rest_world(SOON, "resume_at_reset = true\n") as world:
        person = ShellPerson(world)
        person.type("a long job\rsecond thought")
        person.wait_for(r"2 not sent \(every agent rests, sent at \d\d:\d\d\)")
        person.wait_for(r"(?s)demo > a long job.*demo > a long job\s+I begin")
        person.wait_for(r"waits: a long job\s+waits: second thought\s+demo · demo rests until")
        assert list_prompts(world, person.session())[:2] == ["a long job", "a long job"]


def test_a_resting_turn_is_taken_up_with_its_message_once() -> None:
    """The shell that asked is gone and kept nothing: the journal has the message nobody answered."""
    with rest_world(LIMIT) as world:
        first = ShellPerson(world)
        first.begin("a long job")
        session = first.session()
        first.terminal.kill()
        wait_until(lambda: world.session(session).state.value == "ended", "the turn rests")
        second = ShellPerson(world, "resume", session[-8:])
        second.wait_for(r"waits: a long job\s+demo · demo rests until .* 1 not sent \(every agent rests\)")
        second.type(f"/resume {session[-8:]}", shows=r"(?s)It began with.*It began with")
        second.terminal.wait_quiet(0.3)
        assert second.screen.count("waits: a long job") == 1
        third = ShellPerson(world, "resume", session[-8:])
        third.wait_for("Another shell has it too")
        third.terminal.wait_quiet(0.3)
        assert "waits:" not in third.screen
        third.terminal.close()
        second.type("/exit")
        assert second.terminal.wait_exit(120) == 0
        fourth = ShellPerson(world, "resume", session[-8:])
        fourth.wait_for("1 not sent .every agent rests")
        assert fourth.screen.count("waits: a long job") == 1


@pytest.mark.size("test")
def test_who_is_said_to_rest_no_longer_leaves_the_status_line_at_once() -> None:
    """A line that goes on saying so after it was cleared makes the person doubt the command."""
    late = {"limit": "You've hit your session limit", "resets_in_s": 7200}
    with rest_world(late) as world:
        person = ShellPerson(world)
        person.type("a long job")
        person.wait_for(r"demo rests until .* 1 not sent \(every agent rests\): Enter sends on")
        person.type("/limits clear demo", shows=r"demo may be chosen again")
        person.wait_for(r"(?m)^demo · 1 not sent \(every agent rests\)")


def test_a_switch_to_an_agent_that_rests_says_who_answers_instead_and_why(world: RelayWorld) -> None:
    """The next message was said to go to the one that rests, and another answered it without a word."""
    person = ShellPerson(world)
    person.type("out of room", shows=r"(?s)Continuing with understudy.*understudy goes on")
    person.wait_idle()
    person.type("/undo-handoff")
    person.wait_for(
        r"(?s)→ Your next message goes to demo\.\s+demo rests until .*"
        r"until then your messages go to another agent\. To use demo"
    )
    assert "/limitscleardemo" in "".join(person.screen.split())
    person.type("hello")
    person.wait_for(r"demo is not available \(rests until [^)]+\); understudy takes this turn")
    person.wait_idle()
