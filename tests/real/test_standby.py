"""A real agent started ahead of a real limit: what the limit costs then, against a cold start beside it."""

import contextlib
import re
import time
from dataclasses import dataclass
from datetime import datetime

import pytest

from agent_relay.domain.session import Session
from agent_relay.system.processes import find_family
from tests.support import real_seeds
from tests.support.provider import errors
from tests.support.provider.steps import Step, say
from tests.support.real import World, open_world
from tests.support.real_launch import PROMPTS
from tests.support.real_switch import find_event
from tests.support.real_terminal import Terminal
from tests.support.real_work import LIMITS, distrust, order, read_work, type_line, wait_prompt, wait_work

GOES_ON = "I pick up where it stopped."
_WARNED = {"used": 0.92, "status": "allowed_warning", "5h_surpassed_threshold": "0.9"}
NEAR = Step(say="Nearly there.", headers=errors.claude_headers(**_WARNED))


@dataclass
class Cost:
    """Seconds from the limit until the user saw the successor's prompt, and until its first request."""

    shown_s: float
    asked_s: float
    standby_mb: float = 0.0


def want_standby(world: World) -> None:
    path = f"{world.env()['AGENT_RELAY_HOME']}/config/config.toml"
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n[handoff]\nstandby = true\n")


def is_ready(session: Session) -> bool:
    return session.standby is not None and session.standby.leg.was_ready


def read_memory_mb(session: Session) -> float:
    """What the standby's agent takes, its own share of shared pages alone."""
    assert session.standby is not None
    taken_kb = 0
    for generation in find_family(session.standby.leg.child_pid):
        for pid in generation:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                found = re.search(r"^Pss: +(\d+) kB", file.read(), re.MULTILINE)
                taken_kb += int(found[1]) if found is not None else 0
    return taken_kb / 1024


def wait_limit(world: World, terminal: Terminal) -> datetime:
    """When the limit was seen, by the journal."""
    terminal.wait_until(lambda: find_event(world, "handoff.begun") is not None, "the limit to be seen")
    begun = find_event(world, "handoff.begun")
    assert begun is not None
    return begun.at


def measure(first: str, second: str, *, is_warm: bool) -> Cost:
    """What a limit of `first` costs until `second` works on, in a world of its own."""
    with open_world() as world:
        real_seeds.free_hands(world.home)
        order(world, first, second, only=True)
        if is_warm:
            want_standby(world)
        world.play(first, NEAR, LIMITS[first])
        world.play(second, say(GOES_ON))
        terminal = world.open(world.relay(first))
        wait_prompt(terminal, first)
        type_line(terminal, "Make add() in calc.py right.")
        terminal.wait_for("Nearly there")
        near = wait_work(world, terminal, lambda found: found.prepared is not None, "the near limit")
        assert (near.standby is not None) == is_warm
        taken_mb = 0.0
        if is_warm:
            ready = wait_work(world, terminal, is_ready, f"{second} to be ready")
            taken_mb = read_memory_mb(ready)
            # Nothing but its prompt was ever asked of it, and the user sees the agent at work.
            assert world.requests(second) == []
            assert not re.search(PROMPTS[second], terminal.screen) or PROMPTS[second] == PROMPTS[first]
        terminal.wait_quiet(1.0)
        type_line(terminal, "go on")
        limited_at = wait_limit(world, terminal).timestamp()
        terminal.wait_for(PROMPTS[second])
        shown_s = time.time() - limited_at
        terminal.wait_until(lambda: bool(world.requests(second)), f"the first request of {second}")
        terminal.wait_for(GOES_ON[:20])
        session = read_work(world)
        assert session.leg is not None
        ahead = find_event(world, "standby.starting")
        assert (ahead is not None) == is_warm
        if ahead is not None:
            assert getattr(ahead.body, "leg", "") == session.leg.id
        return Cost(shown_s, float(world.requests(second)[0]["at"]) - limited_at, taken_mb)


@pytest.mark.parametrize(
    ("first", "second"), [("claude", "codex"), ("claude", "opencode"), ("claude", "gemini")]
)
def test_a_limit_costs_less_where_the_next_agent_is_ready(first: str, second: str) -> None:
    """It was started while the limit was near: only packet and delivery are left."""
    cold = measure(first, second, is_warm=False)
    warm = measure(first, second, is_warm=True)
    print(f"{first} -> {second}: cold {cold}, warm {warm}")  # noqa: T201 - the figures of docs/performance.md
    assert warm.shown_s < cold.shown_s
    assert warm.asked_s < 0.8 * cold.asked_s


def test_an_agent_that_asks_whether_a_folder_is_trusted_is_not_kept_ready(world: World) -> None:
    """Nobody could answer it unseen; at the limit it asks on the user's screen, as ever."""
    order(world, "claude", "codex", only=True)
    distrust(world, "codex")
    want_standby(world)
    world.play("claude", NEAR, LIMITS["claude"])
    world.play("codex", say(GOES_ON))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, "Make add() in calc.py right.")
    terminal.wait_until(lambda: find_event(world, "standby.ended") is not None, "codex not to be kept ready")
    dropped = find_event(world, "standby.dropped")
    assert dropped is not None
    assert getattr(dropped.body, "why", "") == "it asks something before it can work"
    assert "trust" not in terminal.screen.lower()
    terminal.wait_quiet(1.0)
    type_line(terminal, "go on")
    terminal.wait_until(lambda: "trust" in terminal.screen.lower(), "the dialog")
    assert world.requests("codex") == []
