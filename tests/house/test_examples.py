"""What stands under examples/ works when copied."""

import os
import re

from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect._limits import match_rule
from agent_relay.detect.screen_state import match_state
from tests.house import tree

EXAMPLES = os.path.join(tree.CHECKOUT, "examples")


def test_the_custom_adapter_is_one() -> None:
    """It is the first thing somebody copies."""
    loaded = load_adapter(os.path.join(EXAMPLES, "custom-adapter", "scribe"))
    rules = load_rules(loaded)
    for limit in rules.limits:
        assert [line for line in limit.accepts if match_rule(limit, line) is None] == []
        assert [line for line in limit.rejects if match_rule(limit, line) is not None] == []
    for state in rules.states:
        assert [line for line in state.accepts if not match_state(state, line)] == []
        assert [line for line in state.rejects if match_state(state, line)] == []


def test_every_example_is_in_the_list() -> None:
    """An example nobody hears of helps nobody."""
    listed = set(re.findall(r"`([^`]+)`", tree.read_text("examples/README.md")))
    for name in os.listdir(EXAMPLES):
        if name not in {"README.md", "first-handoff.jsonl"}:
            assert any(entry.split("/")[0] == name for entry in listed), name
