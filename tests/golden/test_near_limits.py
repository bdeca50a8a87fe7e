"""Near limits in what real agents recorded of their windows, from a few minutes of provoked limits each."""

import os
from datetime import UTC, datetime

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.domain.limits import Kind, Source
from agent_relay.domain.values import AgentName
from agent_relay.sources.recording import read_evidence

HERE = os.path.dirname(__file__)
LONG_AGO = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("agent", "run", "expected"),
    [
        ("codex", "codex-0.169.0-approaching-limit-120x40", ["92 % of its 5-hour window is used"]),
        ("claude", "claude-2.1.197-approaching-limit-hooks-120x40", ["92 % of its 5-hour window is used"]),
        ("codex", "codex-0.169.0-usage-limit-mid-120x40", []),
        ("claude", "claude-2.1.197-session-limit-mid-hooks-120x40", []),
        ("codex", "codex-0.169.0-decoy-80x24", []),
    ],
)
def test_a_recorded_window_is_told_of_once_and_a_jump_to_its_end_not_at_all(
    agent: str, run: str, expected: list[str]
) -> None:
    """Codex's reset moved with every answer. From 41 % to a refusal in one reading, nobody can tell ahead."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in"))
    detector = Detector(rules, agent=AgentName(agent), started_at=LONG_AGO, zone=UTC)
    near: list[str] = []
    for record in read_evidence(os.path.join(HERE, "transcripts", agent, run)):
        if record.at is not None:
            found = detector.hear(record, now=record.at)
            structured = [one for one in found if one.evidence.source is not Source.SCREEN]
            near += [one.evidence.text for one in structured if one.kind is Kind.NEAR_LIMIT]
    assert near == expected
