"""Report lines of agents' records that cannot be read: a count without them may be too low."""

from collections.abc import Mapping, Sequence

import msgspec

from agent_relay.domain.text.counts import render_count


class Damage(msgspec.Struct, frozen=True):
    """So many `lines` of one of the agent's files, last written at `at` (epoch in ms), cannot be read.

    A last line without its end does not count: it may be being written.
    """

    agent: str
    lines: int
    at: int


def describe_damage(damages: Sequence[Damage], since: Mapping[str, int]) -> str:
    """Say in words, without a capital, what may be missing in what agents used; empty for nothing.

    `since` says by agent from when on (epoch in ms) its use counts; other agents do not count. When a
    damaged line was written is unknown, only that it was not after the file's last change.
    """
    lines: dict[str, int] = {}
    for damage in damages:
        if damage.agent in since and damage.at >= since[damage.agent]:
            lines[damage.agent] = lines.get(damage.agent, 0) + damage.lines
    if not lines:
        return ""
    named = [f"{render_count(count, 'line')} of {agent}'s records" for agent, count in lines.items()]
    return f"{' and '.join(named)} cannot be read"
