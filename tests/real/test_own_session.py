import pytest

from agent_relay.domain.events.session import LegNamed, LegStarting
from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import deliver, quit_politely, start, wait_ready
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    LIMITS,
    order,
    read_all_events,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
)

OLD = "Write a page about heliotropes."
NEW = "Write a page about marigolds."


def work_without_us(world: World, agent: str) -> str:
    """The name of a native session the user had before, in which `OLD` was asked and answered."""
    world.play(agent, say("The first answer."))
    leg = start(world, agent)
    wait_ready(leg)
    deliver(leg, OLD)
    leg.terminal.wait_for("The first answer")
    leg.terminal.wait_quiet()
    quit_politely(leg, "ready")
    return leg.values["native_id"]


def hand_over(world: World, terminal: Terminal, agent: str, second: str) -> str:
    """What `second` is told when `agent` met its limit at `NEW`."""
    world.play(agent, LIMITS[agent])
    world.play(second, say("I pick up where it stopped."))
    type_line(terminal, NEW)
    heard = wait_heard(world, terminal, second)
    wait_taken_over(world, terminal, second)
    return heard


def test_after_a_clear_the_packet_comes_from_the_new_conversation(world: World) -> None:
    """`/clear` begins another native session: what was cleared must not come back with the successor."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex")
    world.play("claude", say("The first answer."))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, OLD)
    terminal.wait_for("The first answer")
    terminal.wait_quiet()
    type_line(terminal, "/clear")
    terminal.wait_until(lambda: "The first answer" not in terminal.screen, "a cleared screen")
    terminal.wait_quiet()
    heard = hand_over(world, terminal, "claude", "codex")
    events = [event.body for event in read_all_events(world)]
    begun = next(body for body in events if isinstance(body, LegStarting))
    named = [body for body in events if isinstance(body, LegNamed) and body.leg == begun.leg]
    first = read_work(world).legs[0]
    assert named[-1].native_id != begun.native_id
    assert first.native_id == named[-1].native_id
    assert first.transcript.endswith(f"/{first.native_id}.jsonl")
    assert NEW in heard
    assert "heliotropes" not in heard


@pytest.mark.parametrize(
    ("agent", "words", "second"),
    [
        ("claude", ("--continue",), "codex"),
        ("claude", ("--resume", "{native_id}"), "codex"),
        ("gemini", ("--resume",), "opencode"),
        ("gemini", ("--resume", "{native_id}"), "opencode"),
    ],
)
def test_the_user_may_choose_a_native_session_by_the_agents_own_words(
    world: World, agent: str, words: tuple[str, ...], second: str
) -> None:
    """Habits stay: the agent goes on in the session its own arguments name, and so does the handoff."""
    real_seeds.free_hands(world.home)
    order(world, agent, second)
    native_id = work_without_us(world, agent)
    chosen = [word.format(native_id=native_id) for word in words]
    terminal = world.open(world.relay(agent, "--", *chosen))
    terminal.wait_for("The first answer")
    wait_prompt(terminal, agent)
    heard = hand_over(world, terminal, agent, second)
    assert len(world.requests(agent)) > 1
    assert OLD in world.requests(agent)[1]["text"]
    assert read_work(world).legs[0].native_id == native_id
    assert NEW in heard
    assert OLD in heard
