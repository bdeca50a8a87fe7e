"""What real agents recorded of their limits and windows, without their screens."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from agent_relay.detect.detector import Detector
from agent_relay.domain.limits import Kind, Record, Signal
from agent_relay.domain.protocol.watch_output import LiveSession, WindowUsed
from agent_relay.domain.values import AgentName
from agent_relay.faces.export._figures import build_figures
from agent_relay.faces.watch.view import NO_FIGURES, View, build_session_view
from agent_relay.sources.recording import read_evidence
from tests.faces.watch.lives import BEGINNING, follow
from tests.support.built_in import load_agent_rules

HERE = os.path.dirname(__file__)
LONG_AGO = datetime(2026, 11, 1, tzinfo=UTC)


def begin(agent: str, run: str, started_at: datetime = LONG_AGO) -> tuple[Detector, list[Record]]:
    """A detector of that agent, and the dated records of the run in the order of their times."""
    records = [one for one in read_evidence(os.path.join(HERE, "transcripts", agent, run)) if one.at]
    detector = Detector(load_agent_rules(agent), agent=AgentName(agent), started_at=started_at, zone=UTC)
    return detector, sorted(records, key=lambda record: record.at or LONG_AGO)


def hear_all(detector: Detector, records: Iterable[Record]) -> list[Signal]:
    """What the detector says to all of them."""
    return [signal for one in records for signal in detector.hear(one, now=one.at or LONG_AGO)]


def hear(agent: str, run: str, *, started_at: datetime = LONG_AGO, wait_s: float = 0) -> list[Signal]:
    """What decides in that run, and when nothing comes after it for so long."""
    detector, records = begin(agent, run, started_at)
    signals = hear_all(detector, records)
    signals += detector.tick(now=(records[-1].at or LONG_AGO) + timedelta(seconds=wait_s))
    return [signal for signal in signals if signal.decides]


def render(signal: Signal) -> str:
    reset = signal.resets_at.strftime("%Y-%m-%dT%H:%M:%S") if signal.resets_at else "-"
    return f"{signal.kind} {signal.scope} {reset} {signal.evidence.source}"


RUNS = {
    ("claude", "claude-2.1.197-session-limit-hooks-120x40"): [
        "limit account 2026-11-20T12:23:00 transcript",
        "limit account 2026-11-20T12:23:48 transcript",
    ],
    ("claude", "claude-2.1.197-session-limit-mid-hooks-120x40"): [
        "limit account 2026-11-20T12:40:33 transcript"
    ],
    ("claude", "claude-2.1.197-api-spend-cap-hooks-120x40"): ["limit billing 2026-12-01T00:00:00 transcript"],
    ("claude", "claude-2.1.197-credit-balance-low-hooks-120x40"): ["limit billing - transcript"],
    ("claude", "claude-2.1.330-session-limit-120x40"): ["limit account 2026-11-23T11:50:21 transcript"],
    ("claude", "claude-2.1.330-session-limit-continue-120x40"): [
        "limit account 2026-11-23T09:55:11 transcript"
    ],
    ("claude", "claude-2.1.330-weekly-limit-80x24"): ["limit account 2026-11-26T21:10:50 transcript"],
    ("claude", "claude-2.1.330-opus-limit-120x40"): ["limit model 2026-11-26T21:10:53 transcript"],
    ("claude", "claude-2.1.330-overage-limit-120x40"): ["limit billing 2026-12-03T19:52:22 transcript"],
    ("claude", "claude-2.1.330-org-spend-limit-120x40"): ["limit billing 2026-11-30T08:32:29 transcript"],
    ("claude", "claude-2.1.330-decoy-prose-120x40"): [],
    ("claude", "claude-2.1.330-decoy-user-prompt-120x40"): [],
    ("claude", "claude-2.1.330-decoy-file-80x24"): [],
    ("claude", "claude-2.1.197-sse-overloaded-midstream-hooks-120x40"): [],
    ("claude", "claude-2.1.197-api429-retry-hooks-120x40"): [],
    ("claude", "claude-2.1.197-edit-shell-hooks-120x40"): [],
    ("codex", "codex-0.169.0-usage-limit-hooks-120x40"): ["limit account 2026-11-20T12:50:29 transcript"],
    ("codex", "codex-0.169.0-rate-limit-429-exhausted-hooks-120x40"): ["failure transient - transcript"],
    ("codex", "codex-0.169.0-edit-shell-hooks-120x40"): [],
    ("gemini", "decoy"): [],
    ("gemini", "transient-429"): [],
    ("gemini", "compress"): [],
    ("opencode", "insufficient-quota"): ["limit billing - log"],
    ("opencode", "credit-too-low"): ["limit billing - log"],
    ("opencode", "decoy"): [],
    ("opencode", "native-resume"): [],
    ("opencode", "events/opencode-1.18.33-anthropic-529-transient-120x40.jsonl.gz"): [],
    ("opencode", "events/opencode-1.18.33-transient-503-120x40.jsonl.gz"): [],
    ("opencode", "events/opencode-1.18.33-go-weekly-limit-120x40.jsonl.gz"): [
        "limit account 2026-11-21T05:43:57 event"
    ],
    ("opencode", "events/opencode-1.18.33-zen-free-limit-dialog-80x24.jsonl.gz"): [
        "limit account 2026-11-20T16:06:27 event"
    ],
}
"""What the records of each run alone give, by agent and run."""


def test_the_records_of_a_run_alone_give_exactly_its_limits() -> None:
    """Structured evidence decides alone, once for each limit, with the exactest reset it can find."""
    assert {(agent, run): [render(signal) for signal in hear(agent, run)] for agent, run in RUNS} == RUNS


def test_a_subagent_s_failure_is_not_the_conversation_s_own() -> None:
    """A model a subagent alone uses may be at its limit; what stops the conversation has no id."""
    detector, records = begin("claude", "claude-2.1.330-session-limit-subagent-120x40")
    told = [one for one in records if one.data.get("hook_event_name") == "StopFailure"]
    assert ["agent_id" in record.data for record in told] == [True, False]
    assert [[signal.decides for signal in hear_all(detector, [one])] for one in told] == [[], [True]]


def test_records_older_than_the_leg_are_history() -> None:
    """A resumed or forked session carries its old limit rows along."""
    later = datetime(2026, 11, 20, 10, 43, 33, tzinfo=UTC)
    assert hear("claude", "claude-2.1.197-resume-old-limit-120x40", started_at=later) == []
    assert len(hear("claude", "claude-2.1.197-resume-old-limit-120x40")) == 1


def test_retries_without_end_become_a_silent_limit() -> None:
    """Google's daily quota behind another front end: four short retries, then nobody says anything more."""
    run = "events/opencode-1.18.33-google-daily-120x40.jsonl.gz"
    assert hear("opencode", run) == []
    assert [render(signal) for signal in hear("opencode", run, wait_s=301)] == [
        "silent-limit account - clock"
    ]


def test_a_recorded_window_is_told_of_once_and_a_jump_to_its_end_not_at_all() -> None:
    """Codex's reset moved with every answer. From 41 % to a refusal in one reading, nobody can tell ahead."""
    near = "92 % of its 5-hour window is used"
    rows = {
        ("codex", "codex-0.169.0-approaching-limit-120x40"): [near],
        ("claude", "claude-2.1.197-approaching-limit-hooks-120x40"): [near],
        ("codex", "codex-0.169.0-usage-limit-mid-120x40"): [],
        ("claude", "claude-2.1.197-session-limit-mid-hooks-120x40"): [],
        ("codex", "codex-0.169.0-decoy-80x24"): [],
    }
    told = {
        row: [one.evidence.text for one in hear_all(*begin(*row)) if one.kind is Kind.NEAR_LIMIT]
        for row in rows
    }
    assert told == rows


def export(agent: str, run: str) -> dict[str, float]:
    """The exported figure of usage windows after everything that run recorded."""
    detector, records = begin(agent, run)
    hear_all(detector, records)
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
    rows = {
        ("codex", "codex-0.169.0-approaching-limit-120x40"): {"primary": 0.92, "secondary": 0.4},
        ("codex", "codex-0.169.0-usage-limit-80x24"): {"primary": 1.0, "secondary": 0.4},
        ("codex", "codex-0.169.0-normal-text-80x24"): {},
        ("claude", "claude-2.1.197-approaching-limit-hooks-120x40"): {"five_hour": 0.92, "seven_day": 0.22},
    }
    assert {row: export(*row) for row in rows} == rows
