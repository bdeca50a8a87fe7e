"""The phrases of packets prove themselves, so that somebody may add one without reading code."""

import os
import re

import pytest

from agent_relay.packet.extract.sentences import get_phrases, plain_apostrophes, read_phrases
from tests.house import tree

GROUPS, PARTS = read_phrases()


def is_met(name: str, line: str) -> bool:
    """Whether the group is found where the code looks for it."""
    asked = {"anywhere": "search", "start": "match", "whole": "fullmatch"}[GROUPS[name].at]
    return getattr(get_phrases(name), asked)(plain_apostrophes(line)) is not None


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_accepts_and_rejects_what_it_says(name: str) -> None:
    """A phrase that was added and matches nothing, or everything, is seen here."""
    group = GROUPS[name]
    assert group.accepts
    assert group.rejects
    assert [line for line in group.accepts if not is_met(name, line)] == []
    assert [line for line in group.rejects if is_met(name, line)] == []


@pytest.mark.parametrize("name", GROUPS)
def test_every_phrase_is_a_valid_expression_of_its_own(name: str) -> None:
    """An unclosed bracket in one phrase would swallow the phrases after it."""
    for phrase in (*GROUPS[name].words, *GROUPS[name].patterns):
        re.compile(re.sub(rf"<(?:{'|'.join(PARTS)})>", "x", phrase))


def test_every_group_and_part_is_used() -> None:
    """What nobody asks for any more misleads whoever adds a phrase to it."""
    folder = os.path.join(tree.CHECKOUT, "agent_relay", "packet")
    source = "".join(
        tree.read_text(os.path.join(at, name))
        for at, _, names in os.walk(folder)
        for name in names
        if name.endswith(".py")
    )
    kinds = ("tests", "lint", "typecheck")
    asked = set(re.findall(r'get_phrases\("([a-z-]+)"\)', source))
    asked |= {f"{kind}-{verdict}" for kind in kinds for verdict in ("passed", "failed")}
    assert asked == set(GROUPS)
    expressions = "".join(group.expression for group in GROUPS.values())
    assert {name for name in PARTS if f"<{name}>" not in expressions} == set()


def test_an_unknown_group_is_refused() -> None:
    """A misspelt name would find nothing, and nobody would notice."""
    with pytest.raises(KeyError):
        get_phrases("no-such-group")
