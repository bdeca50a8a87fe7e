import json
from typing import Any

import pytest

from agent_relay.agents.adapters import build_renderer
from agent_relay.domain.documents.packet_json import parse_packet
from agent_relay.domain.state import State
from agent_relay.store.packets import list_packets
from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import AGENTS, get_adapter
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    order,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)
from tests.support.told_chain import (
    FACTS,
    FRAME,
    NEWS,
    PLANTED,
    SAID,
    TAKING_OVER,
    find_repeated,
    list_first_turns,
    list_steps,
    list_texts,
)

ORDERS = [("claude", "codex", "gemini", "opencode"), ("codex", "opencode", "claude", "gemini")]
LONGEST = 8000


def ask_all(world: World, terminal: Terminal, agent: str) -> None:
    """The user's prompts, each once the one before it is answered; the agent meets its limit in the last."""
    turns = list_first_turns(agent)
    world.play(agent, *(step for _, steps in turns for step in steps))
    wait_prompt(terminal, agent)
    heard = 0
    for text, steps in turns:
        if "\n" in text:
            terminal.paste(text)
            terminal.wait_typed(text)
            terminal.send("\r")
        else:
            type_line(terminal, text)
        heard += len(steps)
        wait_heard(world, terminal, agent, heard)
        terminal.wait_quiet(1)


def read_chain(world: World) -> list[tuple[dict[str, Any], str]]:
    """The packets of the session in their order, each as document and as text."""
    session = read_work(world)
    folder = f"{session.root}/.agent-relay/sessions/{session.id}"
    found = []
    for _, _, path in list_packets(folder):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        with open(path.removesuffix("json") + "md", encoding="utf-8") as file:
            found.append((document, file.read()))
    return found


def read_as_stranger(document: dict[str, Any], agent: str) -> str:
    """The text of a packet as `agent` would read it that never worked in the session."""
    packet = parse_packet(document).model_copy(update={"resumes": None})
    return build_renderer(get_adapter(agent), "")(packet)


def check_words(packets: list[tuple[dict[str, Any], str]]) -> None:
    """No packet tells relay's words as somebody's, the stranger's order as anybody's, or a thing twice."""
    openings = [get_adapter(agent).adapter.deliver.opening for agent in AGENTS]
    announced = [text.split(":")[0].split(" where ")[0] for text in TAKING_OVER]
    for document, text in packets:
        words = "\n".join(list_texts(document))
        assert [one for one in (*openings, *FRAME, *announced) if one in words] == []
        assert [one for one in (*openings, *announced) if one in text] == []
        assert [one for one in FRAME if text.count(one) > 1] == []
        assert PLANTED not in text
        assert find_repeated(text) == []
        assert len(text) <= LONGEST


@pytest.mark.parametrize("agents", ORDERS, ids=" ".join)
def test_facts_outlive_four_handoffs_and_relays_own_words_do_not(
    world: World, agents: tuple[str, ...]
) -> None:
    """What each successor says of what it takes over would grow, leg by leg, to what nobody decided."""
    real_seeds.free_hands(world.home)
    order(world, *agents)
    first, *others = agents
    for number, agent in enumerate(others):
        world.play(agent, *list_steps(agent, number))
    terminal = world.open(world.relay(first))
    ask_all(world, terminal, first)
    wait_work(world, terminal, lambda found: found.state is State.RESTING, "every agent to rest")
    before = len(world.requests(first))
    world.play(first, say("I am back, and the test comes next."))
    done = world.run(world.relay(first, "--yes", "--json"))
    assert done.returncode == 0, done.stderr
    heard = wait_heard(world, terminal, first, before + 1)
    session = wait_taken_over(world, terminal, first)
    assert [leg.agent for leg in session.legs] == [*agents, first]
    packets = read_chain(world)
    assert [document["target_agent"] for document, _ in packets] == [*others, first]
    for number, (document, text) in enumerate(packets[:3]):
        assert [what for what, words in FACTS.items() if words not in text] == []
        assert [news for news in NEWS[:number] if news not in text] == []
        assert text.count(FACTS["what was asked last"]) == 1, document["target_agent"]
    fourth, text = packets[3]
    # Who comes back to its own conversation has there what the packet's text leaves out for it.
    whole = read_as_stranger(fourth, first)
    assert [what for what, words in FACTS.items() if words not in whole] == []
    assert [what for what, words in SAID.items() if words not in heard] == []
    assert [news for news in NEWS if news not in text] == []
    check_words([*packets, (fourth, whole)])
