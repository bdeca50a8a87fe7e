"""What was planted in the agents' own transcripts reaches every target, short and without a secret."""

from pathlib import Path

import pytest

from agent_relay.faces.cli.offline import build_offline
from agent_relay.logic.packet.score import score_text
from tests.support.corpus import lay_out, list_names

_TARGETS = ("claude", "codex", "gemini", "opencode")
_CHARACTERS = 8_000


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests counts."""
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))


def test_the_corpus_has_three_transcripts_of_every_agent() -> None:
    """A table over a corpus that lost its files would still be perfect."""
    assert list_names() == [
        "claude-compacted",
        "claude-long",
        "claude-recorded",
        "codex-forked",
        "codex-long",
        "codex-recorded",
        "gemini-long",
        "gemini-recorded",
        "gemini-resumed",
        "opencode-long",
        "opencode-recorded",
        "opencode-subagents",
    ]


@pytest.mark.parametrize("name", list_names())
def test_nothing_planted_is_lost_or_leaked(name: str, tmp_path: Path) -> None:
    """Constraint, decision, rejection, correction, both steps, last error, waiting prompt; three secrets."""
    sample = lay_out(name, str(tmp_path))
    for target in _TARGETS:
        _, text = build_offline(sample.agent, sample.path, target)
        score = score_text(text, sample.planting)
        assert (score.missing, score.leaked, score.kinds, score.secrets) == ((), (), 8, 3), target
        assert score.characters <= _CHARACTERS, target


@pytest.mark.parametrize("name", list_names())
def test_every_planted_fact_stands_in_its_own_section(name: str, tmp_path: Path) -> None:
    """A decision that is only found in the last exchange is lost with the next handoff."""
    sample = lay_out(name, str(tmp_path))
    packet, _ = build_offline(sample.agent, sample.path, "codex")
    sections = {
        "constraint": "\n".join(one.text for one in packet.constraints),
        "correction": "\n".join(one.text for one in packet.constraints),
        "decision": "\n".join(f"{one.summary} {one.why}" for one in packet.decisions),
        "rejected": "\n".join(f"{one.summary} {one.outcome}" for one in packet.attempts),
        "todo_done": "\n".join(f"{one.status} {one.text}" for one in packet.plan),
        "todo_open": "\n".join(f"{one.status} {one.text}" for one in packet.plan),
        "error": "\n".join(f"{one.summary} {one.evidence}" for one in packet.blockers),
        "prompt": packet.unprocessed_prompt.text if packet.unprocessed_prompt else "",
    }
    for fact in sample.planting.fact:
        alone = sample.planting.model_copy(update={"fact": (fact,), "secret": ()})
        assert score_text(sections[fact.kind], alone).is_perfect, fact


def test_errors_name_where_their_evidence_stands(tmp_path: Path) -> None:
    """An excerpt is checked, not believed."""
    sample = lay_out("claude-recorded", str(tmp_path))
    packet, text = build_offline(sample.agent, sample.path, "codex")
    assert [one.source.transcript for one in packet.blockers if one.source] == [f"{sample.path}:35"]
    assert f"Evidence: {sample.path}:35" in text
