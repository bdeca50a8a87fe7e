"""`/use` of agents that cannot be had, or while one is already taking over; shells that share a session."""

import os

import pytest

from tests.support.at_work import restart
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import LIMIT, SCENES
from tests.support.shells import ShellPerson, list_natives, list_prompts, shell_world

pytestmark = pytest.mark.size("every")

SHORT = {"when": "soon", "do": [{"say": "I begin."}, {"wait_s": 4}, {"say": "I end."}]}
LONG = {"when": "long job", "do": [{"say": "I begin."}, {"wait_s": 1}, LIMIT]}


@pytest.mark.size("test")
def test_an_agent_that_is_not_installed_is_refused_when_it_is_chosen(world: RelayWorld) -> None:
    """Not with the message that was meant for it; and one in the order is passed over at a limit."""
    world.environ["PATH"] = "/usr/bin:/bin"
    with open(f"{world.folders.config}/config.toml", "w", encoding="utf-8") as file:
        file.write('order = ["opencode", "demo", "codex", "understudy"]\n')
    person = ShellPerson(world)
    person.wait_for("your next message goes to demo")
    person.type("/use opencode")
    person.wait_for(r"opencode is not installed\s+See what is missing: !agent-relay doctor")
    person.type("out of luck")
    person.wait_for(r"(?s)demo > out of luck.*Continuing with understudy.*understudy goes on")
    assert list_prompts(world, person.session()) == ["out of luck"]


def test_where_no_agent_is_installed_the_shell_says_what_helps(world: RelayWorld) -> None:
    """The first minute decides; a message without anybody to take it is not queued for nobody."""
    world.environ["PATH"] = "/usr/bin:/bin"
    os.unlink(f"{world.folders.config}/config.toml")
    person = ShellPerson(world)
    person.wait_for("no agent is installed here. Install one of those /agents lists and say /use AGENT")
    person.type("hello", shows=r"there is no agent to send that to\s+Install one")
    assert "waits:" not in person.screen
    person.type("/use dmeo", shows=r"there is no agent 'dmeo'\s+Did you mean demo\? See: /agents")
    person.type("/use demo hello", shows="demo heard you")


def test_an_agent_that_looks_signed_out_is_named_so_when_it_is_chosen(world: RelayWorld) -> None:
    """A keychain is not seen from here, so it is had all the same."""
    os.mkdir(f"{world.folder}/bin")
    os.symlink("/bin/false", f"{world.folder}/bin/codex")
    world.environ["PATH"] = f"{world.folder}/bin:/usr/bin:/bin"
    person = ShellPerson(world)
    person.type("/use codex", shows="Codex does not look signed in. Sign in: codex login")
    person.wait_for("→ Your next message goes to codex")


def test_a_turn_whose_agent_is_signed_out_says_how_to_sign_in() -> None:
    """The agent's own words name no command of a terminal without its screen; its adapter does."""
    refused = [{"again": True, "do": [{"limit": "Invalid API key", "resets_in_s": 0}]}]
    with shell_world(demo=refused) as world:
        folder = add_adapter(world, "zed")
        with open(f"{folder}/adapter.toml", encoding="utf-8") as file:
            text = file.read()
        with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as file:
            file.write(f'sign_in = "zed login"\n{text}')
        restart(world)
        person = ShellPerson(world)
        person.type("/use zed hello", shows="→ zed failed: Invalid API key. Sign in: zed login")


@pytest.mark.size("test")
def test_a_switch_to_who_takes_over_already_changes_nothing() -> None:
    """One handoff at a time: the turn is the successor's, and what waits follows in order."""
    with shell_world(demo=[LONG, *SCENES]) as world:
        person = ShellPerson(world)
        person.begin("a long job")
        person.type("second thought")
        session = person.session()
        wait_until(
            lambda: any(event.body.name == "handoff.begun" for event in world.events(session)), "a failover"
        )
        person.type("/use understudy")
        person.wait_for(
            r"→ understudy is already taking over|understudy is already at work|message goes to understudy"
        )
        person.wait_for(r"(?s)understudy goes on.*understudy > second thought\s+understudy heard you")
        person.wait_idle()
        assert list_prompts(world, session) == ["a long job", "second thought"]
        agents = [agent for agent, _ in list_natives(world, session)]
        assert agents == ["demo", "understudy", "understudy"]


def test_two_shells_of_one_session_know_of_each_other_and_take_turns(person: ShellPerson) -> None:
    """The second is told, waits unrefused, can watch, and goes on with whom the turn was passed on to."""
    person.turn("hello")
    session = person.session()
    second = ShellPerson(person.world, "resume", session[-8:])
    second.wait_for("Another shell has it too; what is sent here waits for its turns")
    person.begin("slow work")
    second.type("me too", shows=r"demo works on another turn of this session \(/resume shows it\)")
    second.type("/resume", shows=r"(?s)I begin.*waits: me too")
    person.type("/use understudy", shows="understudy goes on")
    second.wait_for(r"(?s)Continuing with understudy.*understudy > me too\s+understudy heard you")
    assert list_prompts(person.world, session) == ["hello", "slow work", "me too"]
    agents = [agent for agent, _ in list_natives(person.world, session)]
    assert agents == ["demo", "demo", "understudy", "understudy"]


def test_a_shell_goes_on_with_the_agent_another_one_gave_the_session_to(person: ShellPerson) -> None:
    """Nobody asked here for a handoff back."""
    person.turn("hello")
    session = person.session()
    second = ShellPerson(person.world, "resume", session[-8:])
    person.type("/use understudy go on", shows="understudy goes on")
    person.wait_idle()
    second.type("and I", shows=r"understudy > and I\s+understudy heard you")
    assert [agent for agent, _ in list_natives(person.world, session)] == ["demo", "understudy", "understudy"]


def test_every_message_of_both_is_asked_once_and_in_its_shells_own_order() -> None:
    """Both see the session free at the same moment; whoever is second waits again, and is not refused."""
    with shell_world(demo=[SHORT, *SCENES]) as world:
        first = ShellPerson(world)
        first.turn("hello")
        session = first.session()
        second = ShellPerson(world, "resume", session[-8:])
        first.begin("soon, please")
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
