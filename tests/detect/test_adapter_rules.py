import os

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect._limits import match_rule
from agent_relay.detect.screen_state import match_state
from agent_relay.domain.documents.rules import LimitRule, Rules, StateRule
from tests.house import tree

FOLDER = find_builtin_folder()
RULES: dict[str, Rules] = {
    name: load_rules(load_adapter(os.path.join(FOLDER, name), origin="built-in"))
    for name in sorted(os.listdir(FOLDER))
    if os.path.exists(os.path.join(FOLDER, name, "rules.toml"))
}
LIMITS = [
    pytest.param(rule, id=f"{name}-{rule.id}") for name, rules in RULES.items() for rule in rules.limits
]
STATES = [
    pytest.param(rule, id=f"{name}-{rule.id}")
    for name, rules in RULES.items()
    for rule in rules.states
    if rule.source != "state-file"
]


@pytest.mark.parametrize("rule", LIMITS)
def test_every_limit_rule_accepts_and_rejects_its_lines(rule: LimitRule) -> None:
    """A pattern without examples on both sides is a guess."""
    assert [line for line in rule.accepts if match_rule(rule, line) is None] == []
    assert [line for line in rule.rejects if match_rule(rule, line) is not None] == []


@pytest.mark.parametrize("rule", STATES)
def test_every_state_rule_accepts_and_rejects_its_lines(rule: StateRule) -> None:
    """Readiness decides whether anything may be typed."""
    assert rule.accepts
    assert rule.rejects
    assert [line for line in rule.accepts if not match_state(rule, line)] == []
    assert [line for line in rule.rejects if match_state(rule, line)] == []


def test_every_real_agent_has_structured_evidence() -> None:
    """Their screens can be forged; none of them may be judged by its screen alone."""
    assert [name for name in tree.agent_names() if not RULES[name].is_structured()] == []
