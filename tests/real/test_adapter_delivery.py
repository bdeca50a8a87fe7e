import os

import pytest

from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import AGENTS, deliver, start, wait_ready
from tests.support.sizes import sized

MARK = "a-word-only-the-packet-has"


def build_packet(size_bytes: int) -> str:
    """A packet of about `size_bytes` with what agents might act on: marks, quotes, other alphabets."""
    lines = ["<handoff-context>", f'{MARK} — “quotes” `ticks` $HOME \\n "x" {{y}} @README.md', "!ls", "/quit"]
    while sum(len(line) for line in lines) < size_bytes:
        lines.append(f"{len(lines):05d} a line of the packet: äöü 日本語 ✓ lorem ipsum dolor sit amet")
    return "\n".join([*lines, "</handoff-context>"])


def read_command_lines() -> str:
    """What `ps` shows of everybody."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                found.append(file.read())
        except OSError:
            continue
    return "\n".join(found)


@pytest.mark.parametrize("size_bytes", sized([8_000, 60_000], [8_000]))
@pytest.mark.parametrize("agent", AGENTS)
def test_the_first_request_holds_the_whole_packet_and_ps_shows_none_of_it(
    world: World, agent: str, size_bytes: int
) -> None:
    """A successor that got half a packet would go on with half the work; a packet in `ps` would be public."""
    packet = build_packet(size_bytes)
    path = f"{world.root}/packet.md"
    with open(path, "w", encoding="utf-8") as file:
        file.write(packet)
    world.play(agent, say("I pick up where it stopped."))
    leg = start(world, agent, packet=path)
    wait_ready(leg)
    rules = leg.adapter.deliver
    expected = packet
    if rules.packet_by == "args":
        deliver(leg, rules.opening)
    else:
        for old, new in rules.packet_escapes.items():
            expected = expected.replace(old, new)
        deliver(leg, f"{expected}\n\n{rules.opening}")
    leg.terminal.wait_until(lambda: bool(world.requests(agent)), "the first request")
    assert MARK not in read_command_lines()
    leg.terminal.wait_for("I pick up where it stopped")
    heard = world.requests(agent)
    assert len(heard) == 1
    assert expected in heard[0]["text"]
    assert rules.opening in heard[0]["text"]
    assert "Adds numbers" not in heard[0]["text"]
