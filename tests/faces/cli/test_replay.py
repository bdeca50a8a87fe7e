import json
import os

import pytest

from agent_relay.faces.cli.dispatch import run

GOLDEN = os.path.join(os.path.dirname(__file__), "..", "..", "golden")
LIMIT = os.path.join(GOLDEN, "recordings", "claude", "claude-2.1.197-session-limit-120x40.raw.gz")
RECORDS = os.path.join(GOLDEN, "transcripts", "claude", "claude-2.1.197-session-limit-120x40")


def test_replay_prints_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """What the detector says, with the words it rests on."""
    words = [LIMIT, "--agent", "claude", "--json", "--chunk", "100", "--size", "120x40", "--zone", "UTC"]
    assert run(["replay", *words, "--started-at", "2026-11-20T10:31:00+00:00"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "agent": "claude",
        "signals": [
            {
                "kind": "limit",
                "scope": "account",
                "resets_at": "2026-11-20T12:31:00+00:00",
                "at_offset": 3767,
                "decides": False,
                "rule": "session-limit",
                "model": None,
                "evidence": {
                    "source": "screen",
                    "text": "You've hit your session limit · resets 12:31pm (UTC)",
                },
            }
        ],
    }


def test_with_the_transcript_the_limit_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """The leg's start is found by itself."""
    assert run(["replay", LIMIT, "--agent", "claude", "--transcript", RECORDS]) == 0
    signals = json.loads(capsys.readouterr().out)["signals"]
    assert [(signal["decides"], signal["evidence"]["source"]) for signal in signals] == [(True, "transcript")]


def test_wrong_words_are_one_sentence_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed that could be taken for a result."""
    of_claude = [LIMIT, "--agent", "claude"]
    for words in (
        [LIMIT, "--agent", "nobody"],
        [LIMIT, "--agent", "../claude"],
        [*of_claude, "--size", "wide"],
        [*of_claude, "--size", "0x9999"],
        [*of_claude, "--started-at", "noon"],
        [*of_claude, "--started-at", "2026-11-20T10:31:00"],
        [*of_claude, "--zone", "Nowhere/Land"],
        [*of_claude, "--transcript", "missing"],
        ["--agent", "claude", "missing.raw"],
        ["--agent", "claude"],
    ):
        assert run(["replay", *words]) == 2, words
        captured = capsys.readouterr()
        assert captured.out == ""
        sentence = "recording" if words == ["--agent", "claude"] else words[-1].removeprefix("../")
        assert sentence in captured.err
