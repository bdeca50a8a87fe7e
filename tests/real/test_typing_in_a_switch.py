"""What a person types while real agents change reaches the successor after its packet, once, in order."""

import os
import time
from functools import partial

import pytest

from tests.support import real_seeds
from tests.support.provider.script import flatten
from tests.support.provider.steps import Step, Tool, call, say, shell
from tests.support.real import World
from tests.support.real_switch import GOES_ON, TASK, name_bar, prepare_switch
from tests.support.real_terminal import Terminal
from tests.support.real_work import LIMITS, order, read_all_events, type_line, wait_prompt, wait_work

# Each agent gives way once and takes over once.
PLAYED = [("claude", "codex"), ("codex", "gemini"), ("gemini", "opencode"), ("opencode", "claude")]
# Twenty moments, each of so many writes: an arrow and the marks of a paste come in two.
MOMENTS: tuple[tuple[bytes, ...], ...] = (
    (b"one",),
    (b" two",),
    (b" thrx",),
    (b"\x7f",),
    (b"ee",),
    (b"\r",),
    (b"for",),
    (b"\x1b[", b"D"),
    (b"u",),
    (b"\x1b[C",),
    (b" fi",),
    (b"ve\r",),
    (b"nobody hears this",),
    (b"\x03",),
    (b"six ",),
    (b"\x1b[200~pasted ", b"words\x1b[20", b"1~"),
    (b" seven",),
    (b"\r",),
    (b"eight",),
    (b" nine",),
)
SENT = ["one two three", "four five", "six pasted words seven"]
NOT_SENT = "nobody hears this"
LEFT = "eight nine"
BETWEEN_S = 0.15
OVER = ("handoff.delivered", "handoff.confirmed")


ASKED_FOR = "touch asked-for"
ESCALATED = {"cmd": ASKED_FOR, "sandbox_permissions": "require_escalated", "justification": "May I?"}
# opencode asks nothing by itself.
ASKING = {
    "claude": shell("claude", ASKED_FOR),
    "codex": Tool(name="exec_command", input=ESCALATED),
    "gemini": shell("gemini", ASKED_FOR),
}


def list_names(world: World) -> list[str]:
    """The names of the journal's lines."""
    return [event.body.name for event in read_all_events(world)]


def type_through(world: World, terminal: Terminal) -> list[tuple[str, str]]:
    """Press the keys of all moments; how far the switch was at each of them, and the bottom line.

    The first half is typed from the limit on, the second from the moment at which the successor is started.
    """
    seen = []
    for number, writes in enumerate(MOMENTS):
        if number == len(MOMENTS) // 2:
            terminal.wait_until(lambda: list_names(world).count("leg.started") > 1, "the successor's start")
        for data in writes:
            terminal.send(data)
            terminal.pump(0)
        seen.append((list_names(world)[-1], terminal.rows[-1]))
        until = time.monotonic() + BETWEEN_S
        terminal.wait_until(partial(has_passed, until), "the next moment")
    return seen


def has_passed(moment_s: float) -> bool:
    return time.monotonic() > moment_s


def list_heard(world: World, agent: str) -> str:
    """The user's words in the newest conversation of `agent` that its provider was sent."""
    body = world.requests(agent)[-1]["body"]
    inner = body.get("request", body)
    rows = inner.get("messages") or inner.get("input") or inner.get("contents")
    return "\n".join(flatten(row) for row in rows if row.get("role") == "user")


@pytest.mark.parametrize(("first", "second"), PLAYED)
def test_keys_of_twenty_moments_reach_the_successor_after_its_packet(
    world: World, first: str, second: str
) -> None:
    """Letters, Enter, a paste, Ctrl-C and keys cut in two: nobody has to stop typing for a limit."""
    prepare_switch(world, first, second, *(say(f"Heard {number}.") for number in range(1, 4)))
    terminal = world.open(world.relay(first))
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    terminal.wait_until(lambda: name_bar(first, second) in terminal.rows[-1], "the bar")
    seen = type_through(world, terminal)
    is_below = [name_bar(first, second) in bar for name, bar in seen if name not in OVER]
    # The work is on the screen a moment before the journal says so; then the bar has gone for good.
    assert (is_below, sum(is_below) > len(MOMENTS) // 2) == (sorted(is_below, reverse=True), True), seen
    wait_work(world, terminal, lambda found: bool(found.done), f"{second} to have taken over")
    terminal.wait_until(
        lambda: bool(world.requests(second)) and SENT[-1] in list_heard(world, second),
        f"{SENT[-1]!r} to be heard in {[row['text'][-200:] for row in world.requests(second)]}",
    )
    requests, heard = world.requests(second), list_heard(world, second)
    # What it was asked first is the packet and what to do with it, and nothing a person typed.
    assert all(words in requests[0]["text"] for words in ("<handoff-context>", TASK, "Continue the work"))
    assert [words for words in (*SENT, NOT_SENT, LEFT) if words in requests[0]["text"]] == []
    places = [heard.find(words) for words in ("Continue the work described in the handoff", *SENT)]
    assert (places, min(places) >= 0) == (sorted(places), True), heard
    assert [heard.count(words) for words in SENT] == [1, 1, 1]
    assert [words for row in requests for words in (NOT_SENT, LEFT) if words in row["text"]] == []
    terminal.wait_until(lambda: terminal.screen.count(LEFT) == 1, f"{LEFT!r} in the line of {second}")
    assert NOT_SENT not in terminal.screen
    names = list_names(world)
    assert [names.count(f"handoff.{name}") for name in ("delivered", "confirmed", "failed")] == [1, 1, 0]
    # Told when the successor had taken it, which it cannot before it waited for a prompt.
    assert "leg.ready" in names[names.index("handoff.begun") : names.index("handoff.delivered")]


@pytest.mark.parametrize(("first", "second"), [("claude", "codex"), ("codex", "claude")])
def test_a_line_half_typed_at_the_limit_stands_in_the_successors_line(
    world: World, first: str, second: str
) -> None:
    """One half stood in the line of the agent that gave way, the other was typed below the bar."""
    real_seeds.free_hands(world.home)
    order(world, first, second)
    late: Step = {**LIMITS[first], "hang_s": 8}
    world.play(first, late)
    world.play(second, say(GOES_ON), say("Heard it."))
    terminal = world.open(world.relay(first))
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    terminal.wait_until(lambda: bool(world.requests(first)), "the task to be asked")
    terminal.send("then look")
    terminal.wait_until(lambda: "then look" in terminal.screen, "what is half typed")
    terminal.wait_until(lambda: name_bar(first, second) in terminal.rows[-1], "the bar")
    terminal.send(" into the manual")
    wait_work(world, terminal, lambda found: bool(found.done), f"{second} to have taken over")
    terminal.wait_until(lambda: terminal.screen.count("then look into the manual") == 1, "the whole line")
    terminal.wait_quiet(1)
    terminal.send("\r")
    terminal.wait_until(
        lambda: bool(world.requests(second)) and "then look into the manual" in list_heard(world, second),
        "it to be heard",
    )
    assert "then look" not in world.requests(second)[0]["text"]


@pytest.mark.parametrize("second", sorted(ASKING))
def test_a_permission_is_not_given_by_keys_of_the_switch(world: World, second: str) -> None:
    """The successor asks before all of them are typed: an Enter among the rest would be its yes."""
    first = "codex" if second != "codex" else "claude"
    order(world, first, second)
    world.play(first, LIMITS[first])
    world.play(second, call(ASKING[second], text=GOES_ON), say("It was not done."), say("Heard it."))
    terminal = world.open(world.relay(first))
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    terminal.wait_until(lambda: name_bar(first, second) in terminal.rows[-1], "the bar")
    # The End key means nothing where nothing is typed, and each is typed by itself.
    terminal.send(b"\x1b[F" * 100 + b"one more thing\r")
    terminal.wait_until(lambda: "needs an answer" in terminal.rows[-1], "what the keys wait for")
    terminal.wait_quiet(1)
    terminal.send(b"\x1b")
    terminal.wait_until(lambda: "one more thing" in list_heard(world, second), "the keys to be heard")
    assert not os.path.exists(f"{world.project}/asked-for")
    assert "needs an answer" not in terminal.rows[-1]


def test_keys_that_reach_nobody_are_told(world: World) -> None:
    """Esc cancels the handoff: what was typed for the successor is repeated, for whoever gets it instead."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex")
    world.play("claude", LIMITS["claude"])
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    terminal.wait_until(lambda: "claude → codex ·" in terminal.rows[-1], "the bar")
    terminal.send("and add a test")
    terminal.pump(0)
    terminal.send(b"\x1b")
    terminal.wait_exit()
    assert "14 typed characters were not delivered: and add a test" in " ".join(terminal.screen.split())
    assert world.requests("codex") == []
    names = list_names(world)
    assert ("handoff.cancelled" in names, "handoff.delivered" in names) == (True, False)
