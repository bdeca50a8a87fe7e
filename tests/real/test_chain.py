import json
from datetime import UTC, datetime

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets, read_packet
from tests.support import real_seeds
from tests.support.provider.steps import FOREVER, Step, call, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_work import (
    LIMITS,
    order,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
DECISIONS = {
    "claude": "I decided to keep unittest because the project has no other runner.",
    "codex": "I decided to leave the signature alone because callers pass two numbers.",
    "gemini": "I decided to change calc.py only because the test is right.",
    "opencode": "I decided to add no dependency because the sum needs none.",
}


def build_turn(agent: str) -> list[Step]:
    """A turn that decides something, runs a command and meets the limit."""
    return [call(shell(agent, "git diff --stat"), text=DECISIONS[agent]), LIMITS[agent]]


def read_newest_packet(session: Session) -> tuple[dict[str, object], str]:
    """The document of the session's newest packet, and its text."""
    folder = f"{session.root}/.agent-relay/sessions/{session.id}"
    _, _, path = list_packets(folder)[-1]
    read_packet(path)
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    assert isinstance(found, dict)
    with open(path.removesuffix("json") + "md", encoding="utf-8") as file:
        return found, file.read()


def read_history(world: World) -> list[str]:
    """Who worked, as `handoff history` draws it: each leg below and further right than the one before."""
    done = world.run(world.relay("handoff", "history"))
    assert done.returncode == 0, done.stderr
    legs = [line.split("leg ", 1) for line in done.stdout.splitlines() if " leg " in line]
    depths = [len(before) for before, _ in legs]
    assert depths == sorted(set(depths))
    return [drawn.split(" (")[0].partition(" ")[2] for _, drawn in legs]


def test_one_session_goes_through_all_four_agents_and_back_to_the_first(world: World) -> None:
    """Nothing that was decided is lost on the way, whoever works; the first agent knows its own part."""
    real_seeds.free_hands(world.home)
    order(world, *AGENTS)
    for agent in AGENTS[:-1]:
        world.play(agent, *build_turn(agent))
    world.play("opencode", say(DECISIONS["opencode"]))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    for number, agent in enumerate(AGENTS[1:], start=1):
        heard = wait_heard(world, terminal, agent)
        assert TASK in heard
        assert [earlier for earlier in AGENTS[:number] if DECISIONS[earlier] not in heard] == []
    wait_taken_over(world, terminal, "opencode")
    before = len(world.requests("claude"))
    native_id = read_work(world).legs[0].native_id
    world.play("claude", say("I am back, and add() is next."))
    done = world.run(world.relay("claude", "--yes", "--json"))
    assert done.returncode == 0, done.stderr
    heard = wait_heard(world, terminal, "claude", before + 1)
    terminal.wait_for("I am back")
    session = wait_taken_over(world, terminal, "claude")
    assert [agent for agent, said in DECISIONS.items() if said not in heard] == []
    assert TASK in heard
    assert [leg.agent for leg in session.legs] == [*AGENTS, "claude"]
    assert session.legs[-1].native_id == native_id
    assert (session.legs[-1].resumes, session.legs[-1].lane_why) == (True, "it worked here before")
    packet, text = read_newest_packet(session)
    assert isinstance(packet["lineage"], list)
    assert [leg["agent"] for leg in packet["lineage"]] == list(AGENTS)
    assert [agent for agent, said in DECISIONS.items() if said not in text] == ["claude"]
    assert read_history(world) == [*AGENTS, "claude, resumed"]


def test_a_successor_at_its_own_limit_passes_the_work_on_at_once(world: World) -> None:
    """Two limits in one minute are ordinary at the end of a day: the third agent is told everything."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex", "gemini")
    world.play("claude", *build_turn("claude"))
    world.play("codex", LIMITS["codex"])
    world.play("gemini", say("I pick up where they stopped."))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    heard = wait_heard(world, terminal, "gemini")
    assert TASK in heard
    assert DECISIONS["claude"] in heard
    terminal.wait_for("I pick up where they stopped")
    session = wait_taken_over(world, terminal, "gemini")
    assert [leg.agent for leg in session.legs] == ["claude", "codex", "gemini"]
    assert len(world.requests("codex")) == 1


def test_when_all_rest_the_source_stays_and_the_earliest_reset_is_told(world: World) -> None:
    """Nobody to go on is no reason to lose what stands on the screen; scripts get exit code 3."""
    real_seeds.free_hands(world.home)
    order(world, "claude", "codex", only=True)
    world.play("claude", Step(error="claude-limit", given={"reset_s": 7200}, times=FOREVER))
    world.play("codex", Step(error="codex-limit", given={"reset_s": 90_000}, times=FOREVER))
    terminal = world.open(world.relay("claude"))
    wait_prompt(terminal, "claude")
    type_line(terminal, TASK)
    session = wait_work(world, terminal, lambda found: found.state is State.RESTING, "the session to rest")
    living = session.living_leg
    assert living is not None
    assert living.agent == "codex"
    refused = world.run(world.relay("claude", "--json"))
    assert refused.returncode == 3
    # Where an agent tells it twice, the more exact one comes later.
    told = {session.rested_until, read_work(world).rested_until}
    resets = [datetime.fromisoformat(until).astimezone(UTC) for until in told]
    assert any(f"{at:%H:%M}" in refused.stderr for at in resets), refused.stderr
    other = world.open(world.relay("attach"))
    other.wait_for("Every agent rests. First reset: claude at")
    other.press_until("v", "hit your usage limit")
    assert terminal.is_alive()
    kept = read_work(world).living_leg
    assert kept is not None
    assert (kept.id, kept.child_pid, kept.child_born) == (living.id, living.child_pid, living.child_born)
