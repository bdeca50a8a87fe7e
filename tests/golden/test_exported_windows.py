"""What is exported of usage windows, from what real agents recorded of theirs."""

import os
from datetime import UTC, datetime

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.domain.protocol.watch_output import LiveSession, WindowUsed
from agent_relay.domain.values import AgentName
from agent_relay.faces.export._figures import build_figures
from agent_relay.faces.watch.view import NO_FIGURES, View, build_session_view
from agent_relay.sources.recording import read_evidence
from tests.faces.watch.lives import BEGINNING, follow

HERE = os.path.dirname(__file__)
LONG_AGO = datetime(2026, 11, 1, tzinfo=UTC)


def export(agent: str, run: str) -> dict[str, float]:
    """The figure of usage windows after everything that run recorded."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in"))
    detector = Detector(rules, agent=AgentName(agent), started_at=LONG_AGO, zone=UTC)
    for record in read_evidence(os.path.join(HERE, "transcripts", agent, run)):
        if record.at is not None:
            detector.hear(record, now=record.at)
    windows = tuple(
        WindowUsed(name=one.window.name, used_percent=one.used, resets_at=one.resets_at.isoformat())
        for one in detector.windows
    )
    seen = build_session_view(follow(*BEGINNING), LiveSession("S", 5, "L1", windows=windows), NO_FIGURES, UTC)
    assert seen is not None
    figures = {figure.name: figure.values for figure in build_figures([], {}, View((seen,)))}
    return {window: used for (_, window), used in figures["window_used_ratio"].items()}


def test_windows_are_exported_as_the_agent_recorded_them() -> None:
    """A share between 0 and 1, by the window's own name; none where the agent says none."""
    rows: dict[tuple[str, str], dict[str, float]] = {
        ("codex", "codex-0.169.0-approaching-limit-120x40"): {"primary": 0.92, "secondary": 0.4},
        ("codex", "codex-0.169.0-usage-limit-80x24"): {"primary": 1.0, "secondary": 0.4},
        ("codex", "codex-0.169.0-normal-text-80x24"): {},
        ("claude", "claude-2.1.197-approaching-limit-hooks-120x40"): {"five_hour": 0.92, "seven_day": 0.22},
    }
    assert {(agent, run): export(agent, run) for agent, run in rows} == rows
