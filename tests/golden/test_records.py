import os
from datetime import UTC, datetime, timedelta

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.domain.limits import Signal
from agent_relay.domain.values import AgentName
from agent_relay.sources.recording import read_evidence

HERE = os.path.dirname(__file__)
LONG_AGO = datetime(2026, 11, 1, tzinfo=UTC)


def hear(agent: str, run: str, *, started_at: datetime = LONG_AGO, wait_s: float = 0) -> list[Signal]:
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), agent), origin="built-in"))
    records = read_evidence(os.path.join(HERE, "transcripts", agent, run))
    detector = Detector(rules, agent=AgentName(agent), started_at=started_at, zone=UTC)
    dated = sorted(
        (record for record in records if record.at is not None), key=lambda record: record.at or LONG_AGO
    )
    signals: list[Signal] = []
    for record in dated:
        signals += detector.hear(record, now=record.at or LONG_AGO)
    last = dated[-1].at or LONG_AGO
    signals += detector.tick(now=last + timedelta(seconds=wait_s))
    return [signal for signal in signals if signal.decides]


def render(signal: Signal) -> str:
    reset = signal.resets_at.strftime("%Y-%m-%dT%H:%M:%S") if signal.resets_at else "-"
    return f"{signal.kind} {signal.scope} {reset} {signal.evidence.source}"


def test_the_records_of_a_run_alone_give_exactly_its_limits() -> None:
    """Structured evidence decides alone, once for each limit, with the exactest reset it can find."""
    rows = {
        ("claude", "claude-2.1.197-session-limit-hooks-120x40"): [
            "limit account 2026-11-20T12:23:00 transcript",
            "limit account 2026-11-20T12:23:48 transcript",
        ],
        ("claude", "claude-2.1.197-session-limit-mid-hooks-120x40"): [
            "limit account 2026-11-20T12:40:33 transcript"
        ],
        ("claude", "claude-2.1.197-api-spend-cap-hooks-120x40"): [
            "limit billing 2026-12-01T00:00:00 transcript"
        ],
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
    assert {(agent, run): [render(signal) for signal in hear(agent, run)] for agent, run in rows} == rows


def test_a_subagent_s_failure_is_not_the_conversation_s_own() -> None:
    """A model a subagent alone uses may be at its limit; what stops the conversation has no id."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), "claude"), origin="built-in"))
    run = os.path.join(HERE, "transcripts", "claude", "claude-2.1.330-session-limit-subagent-120x40")
    told = [one for one in read_evidence(run) if one.data.get("hook_event_name") == "StopFailure"]
    detector = Detector(rules, agent=AgentName("claude"), started_at=LONG_AGO, zone=UTC)
    assert ["agent_id" in record.data for record in told] == [True, False]
    decides = [[signal.decides for signal in detector.hear(one, now=one.at or LONG_AGO)] for one in told]
    assert decides == [[], [True]]


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
