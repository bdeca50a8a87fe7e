from collections.abc import Iterator

import pytest

from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import LIMIT, SCENES
from tests.support.shells import ShellPerson, list_natives, list_prompts, shell_world

pytestmark = pytest.mark.size("every")

LONG = {"when": "long job", "do": [{"say": "I begin."}, {"wait_s": 5}, LIMIT]}


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine whose first agent meets a limit in its long job."""
    with shell_world(demo=[LONG, *SCENES]) as made:
        yield made


def detach(person: ShellPerson, shows: str = "Back in the shell") -> None:
    """The person leaves the agent's own screen, and is back in the shell."""
    person.terminal.send("\x1d")
    person.terminal.wait_quiet(0.3)
    person.type("/detach", shows=shows)
    person.terminal.wait_quiet(0.3)


def assert_one_conversation(person: ShellPerson) -> None:
    """Three legs went on with one conversation of one agent's."""
    natives = list_natives(person.world, person.session())
    assert len(natives) == 3
    assert len(set(natives)) == 1


@pytest.mark.size("test")
def test_a_limit_in_the_middle_of_a_turn_takes_everything_typed_to_the_successor(person: ShellPerson) -> None:
    """Two messages wait while the agent meets its limit: the next one gets the turn, then both, in order."""
    person.begin("a long job")
    person.type("first thought")
    person.type("second thought", shows=r"waits: first thought\s+waits: second thought")
    person.wait_for(r"demo hit its session limit")
    person.wait_for(r"(?s)understudy goes on.*understudy > first thought.*understudy > second thought")
    person.wait_idle()
    session = person.session()
    assert list_prompts(person.world, session) == ["a long job", "first thought", "second thought"]
    agents = [agent for agent, _ in list_natives(person.world, session)]
    assert agents == ["demo", "understudy", "understudy", "understudy"]
    assert "waits:" not in person.screen


def test_when_everybody_rests_the_message_waits_at_the_head_of_the_others(person: ShellPerson) -> None:
    """Nobody has answered it, so it is still to be sent; the line above says until when they rest."""
    person.type("/order demo")
    person.begin("a long job")
    person.type("my next thought", shows=r"waits: a long job\s+waits: my next thought")
    person.wait_for("2 not sent")
    assert "demo rests until" in person.screen


def test_a_daemon_that_dies_is_replaced_and_nothing_typed_is_lost(person: ShellPerson) -> None:
    """The agent works on, the next daemon tells the rest, and what waits is sent then."""
    person.begin("soon, please")
    person.type("my second thought", shows="waits: my second thought")
    person.world.kill_daemons()
    person.wait_for(r"(?s)I end.*demo > my second thought.*demo heard you")
    assert list_prompts(person.world, person.session()) == ["soon, please", "my second thought"]
    person.wait_idle()
    person.type("/exit")
    assert person.terminal.wait_exit(120) == 0


@pytest.mark.size("test")
def test_attach_shows_the_same_conversation_and_comes_back_to_it(person: ShellPerson) -> None:
    """One conversation, with and without a screen: the agent's own session stays the same."""
    person.turn("hello")
    person.attach()
    person.type("typed on its screen", shows=r"(?s)typed on its screen.*demo heard you")
    person.wait_for("ready . demo")
    detach(person)
    person.type("and on", shows=r"(?s)demo > and on.*demo heard you")
    person.wait_idle()
    session = person.session()
    assert_one_conversation(person)
    assert [leg.headless for leg in person.world.session(session).legs] == [True, False, True]
    assert list_prompts(person.world, session) == ["hello", "and on"]


def test_attach_in_the_middle_of_a_turn_opens_the_screen_when_it_ends(person: ShellPerson) -> None:
    """Nobody should have to watch for a turn's end; what is half typed and what waits are still there."""
    person.begin("soon, please")
    person.type("then this")
    person.type("/attach")
    person.wait_for("demo is in the middle of a turn without a screen; its screen opens when the turn ends")
    person.press("half typed", shows="ready . demo")
    assert "half typed" not in person.screen
    detach(person, r"(?s)Back in the shell.*demo > then this\s+demo heard you.*> half typed")
    person.wait_idle()
    assert [leg.headless for leg in person.world.session(person.session()).legs] == [True, False, True]
    assert list_prompts(person.world, person.session()) == ["soon, please", "then this"]


def test_an_agent_that_was_left_in_its_own_screen_is_named_when_the_shell_is_left(
    person: ShellPerson,
) -> None:
    """It costs memory, and who forgot it would wonder what still works here."""
    person.attach()
    detach(person)
    person.type("/exit")
    assert person.terminal.wait_exit(120) == 0
    back = f"To return: agent-relay attach {person.session()}. To end it: agent-relay stop {person.session()}"
    assert f"demo keeps working in its own screen. {back}" in "".join(person.screen.splitlines())


@pytest.mark.size("test")
def test_a_handoff_by_hand_is_like_one_by_a_limit_and_undone_gives_the_conversation_back(
    person: ShellPerson,
) -> None:
    """A switch that was a mistake costs one command; the first agent still knows what it knew."""
    person.turn("hello")
    person.type("/use understudy", shows="→ Your next message goes to understudy")
    person.type("go on", shows=r"(?s)Continuing with understudy.*understudy goes on")
    person.wait_idle()
    person.type("/undo-handoff", shows="→ Your next message goes to demo")
    person.type("back again", shows=r"(?s)demo > back again.*Continuing with demo")
    person.wait_idle()
    natives = list_natives(person.world, person.session())
    assert [agent for agent, _ in natives] == ["demo", "understudy", "demo"]
    assert natives[0] == natives[2]


def test_a_killed_shells_turn_is_taken_up_by_the_next_one(world: RelayWorld) -> None:
    """The turn is the daemon's: a new terminal shows it from its beginning and goes on."""
    first = ShellPerson(world)
    first.begin("slow work")
    session = first.session()
    first.terminal.kill()
    second = ShellPerson(world, "resume", session[-8:])
    second.wait_for(r"next message goes to demo.*\n(.*\n)*.*I begin")
    second.wait_for("· working")
    second.press("\x03", shows="was stopped")
    wait_until(lambda: world.session(session).state.value == "ended", "the turn ends")


def test_an_agent_at_work_on_its_own_screen_is_waited_for(person: ShellPerson) -> None:
    """What it does there must not be cut off by the next message, and that message must not be lost."""
    person.turn("hello")
    person.attach()
    person.begin("soon, please")
    detach(person)
    person.type("and on", shows=r"demo works on its own screen \(/attach shows it\)")
    person.wait_for(r"(?s)demo > and on.*demo heard you")
    person.wait_idle()
    assert_one_conversation(person)
