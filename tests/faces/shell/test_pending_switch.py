"""An agent chosen while another one takes over: asked for when that is through, or told that it cannot be."""

import os
import signal
import threading

import pytest

from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.faces.shell._agent_switch import ask_when_free
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import RelayWorld, is_stopped, wait_until
from tests.support.runs import LIMIT, SCENES
from tests.support.shells import ShellPerson, list_natives, list_prompts, shell_world

LONG = {"when": "long job", "do": [{"say": "I begin."}, {"wait_s": 1}, LIMIT]}
SLOW = [{"again": True, "do": [{"say": "understudy begins"}, {"wait_s": 600}, {"say": "understudy ends"}]}]
THIRD = [{"again": True, "do": [{"say": "third goes on"}]}]


class Daemon:
    """Answers from a list; a refusal is raised."""

    def __init__(self, *answers: dict[str, object] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, op: str, /, **fields: object) -> dict[str, object]:
        """The next answer."""
        self.asked.append(f"{op} {fields.get('agent', '')}".strip())
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


BUSY, FREE = {"handoff": "begun"}, {"handoff": ""}
UNDER_WAY = WrongUseError("a handoff to understudy is under way")


@pytest.mark.size("test")
def test_it_is_asked_for_when_nobody_takes_over_any_more() -> None:
    """A handoff that begins between the two questions is waited for, too."""
    daemon = Daemon(BUSY, FREE, UNDER_WAY, BUSY, FREE, {"passed": True})
    assert ask_when_free(daemon, "S", "third", "", threading.Event())
    assert daemon.asked == ["where", "where", "use third", "where", "where", "use third"]


def test_a_turn_that_is_over_passes_to_nobody_and_a_refusal_is_told() -> None:
    """The shell gives its next message to who was wished, or says why not."""
    assert not ask_when_free(Daemon(FREE, {"passed": False}), "S", "third", "", threading.Event())
    with pytest.raises(NobodyAvailableError):
        ask_when_free(Daemon(FREE, NobodyAvailableError("it rests")), "S", "third", "", threading.Event())
    with pytest.raises(WrongUseError):
        ask_when_free(Daemon(FREE, UNDER_WAY, FREE), "S", "third", "", threading.Event())


def test_who_is_not_wished_any_more_is_not_asked_for() -> None:
    """Ctrl-C ends the turn, and with it what was to follow it."""
    unwanted, daemon = threading.Event(), Daemon()
    unwanted.set()
    assert not ask_when_free(daemon, "S", "third", "", unwanted)
    assert daemon.asked == []


def begin_failover(world: RelayWorld) -> tuple[ShellPerson, int]:
    """Somebody at a shell in the middle of a failover, and the frozen daemon that performs it."""
    # Before anybody sits there: a shell replaces a daemon that dies.
    world.kill_daemons()
    daemon = world.start_daemon(pause_at="after handoff.begun")
    person = ShellPerson(world)
    person.begin("a long job")
    wait_until(lambda: is_stopped(daemon.pid), "a failover is under way", limit_s=60)
    return person, daemon.pid


@pytest.mark.size("test")
def test_an_agent_chosen_during_a_failover_has_the_turn_after_it() -> None:
    """Whoever sees a limit coming chooses at that very moment; asking them to try again is no answer."""
    with shell_world(demo=[LONG, *SCENES], understudy=SLOW, third=THIRD) as world:
        add_adapter(world, "third")
        person, daemon = begin_failover(world)
        person.type("/use third")
        os.kill(daemon, signal.SIGCONT)
        person.wait_for("third goes on")
        person.wait_idle()
        assert [agent for agent, _ in list_natives(world, person.session())] == [
            "demo",
            "understudy",
            "third",
        ]
        assert list_prompts(world, person.session()) == ["a long job"]
        person.wait_for(r"(?m)^third\b")


@pytest.mark.size("test")
def test_who_cannot_take_over_after_a_failover_is_told_then_and_the_turn_goes_on() -> None:
    """The one at its limit cannot have the turn back; it is said once the successor works, with the reset."""
    quick = [{"again": True, "do": [{"say": "understudy begins"}, {"wait_s": 3}, {"say": "understudy ends"}]}]
    with shell_world(demo=[LONG, *SCENES], understudy=quick) as world:
        person, daemon = begin_failover(world)
        person.type("/use demo")
        os.kill(daemon, signal.SIGCONT)
        person.wait_for(r"demo has not taken over: cannot hand over \(|next message goes to demo")
        person.wait_for("understudy ends")
        person.wait_idle()
        assert [agent for agent, _ in list_natives(world, person.session())] == ["demo", "understudy"]
