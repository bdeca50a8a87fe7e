"""A first leg that worked on a parser and the handoffs after it, for the tests of packets."""

from datetime import UTC, datetime

from agent_relay.domain.documents.packet import Reason, ResumePacket
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, TodoItem, Tokens
from agent_relay.domain.values import replace
from agent_relay.packet.build import PacketContext, build_packet

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OCCASION = PacketContext("P1", "S1", 1, NOW, "alpha", "beta", Reason.RATE_LIMIT, root="/r", leg_id="L1")
SECOND = replace(
    OCCASION, packet_id="P2", sequence=2, previous_agent="beta", target_agent="gamma", leg_id="L2"
)


def say(*turns: str) -> tuple[Message, ...]:
    """A conversation in which user and agent take turns."""
    return tuple(
        Message("user" if index % 2 == 0 else "assistant", text, index // 2 + 1, place=f"t:{index}")
        for index, text in enumerate(turns)
    )


FIRST = Facts(
    agent="alpha",
    native_id="n1",
    cwd="/r",
    transcript="t",
    conversation=say(
        "Add a cache to the parser. Don't use redis.",
        "I'll use an LRU dict because it needs no server. I tried functools.cache, but it never evicts.",
        "actually, make the size configurable",
        "Next I'll add the option.",
    ),
    commands=(CommandRun("pytest -q", "FAILED test_cache.py::test_size\n1 failed", 1, 2, place="t:5"),),
    files=(FileChange("/r/cache.py", "created", 1, added=10, removed=0),),
    plan=(TodoItem("add the option", "in_progress", 2), TodoItem("update docs", "pending", 2)),
    unprocessed_prompt=say("", "", "actually, make the size configurable")[2],
    background=("subagent: look at callers", "shell: npm run dev"),
    tokens=Tokens(input=5, cached=4, output=3),
)


def build_first() -> ResumePacket:
    """The packet of the first handoff."""
    return build_packet(FIRST, OCCASION)
