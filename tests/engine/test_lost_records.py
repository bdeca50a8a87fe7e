"""What checkpoints kept of each agent's record is what the record said."""

from pathlib import Path

import pytest

from agent_relay.domain.facts import Facts
from agent_relay.domain.text.plain import clean_text
from agent_relay.redact.text import redact_text
from agent_relay.sources.transcript_reader import read_facts
from tests.support.corpus import lay_out, list_names
from tests.support.lost_records import lose
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")


READERS = {
    "claude": "claude-jsonl",
    "codex": "codex-rollout",
    "gemini": "gemini-jsonl",
    "opencode": "opencode-db",
}


EXPORTS = {"opencode-recorded"}
"""What a person exported, no agent's own record."""


def clean(value: object) -> object:
    """The value without secrets, as checkpoints keep it."""
    if isinstance(value, str):
        return redact_text(clean_text(value)).text
    return [clean(one) for one in value] if isinstance(value, list | tuple) else value


def tell(facts: Facts) -> dict[str, object]:
    """What a packet is made of, as far as checkpoints keep it whole."""
    waiting = facts.unprocessed_prompt
    told = {
        "said": [(one.role, one.turn, one.text) for one in facts.conversation],
        "ran": [(run.turn, run.command, run.exit_code) for run in facts.commands],
        "changed": [(one.turn, one.action, one.path, one.added) for one in facts.files],
        "plan": [(step.text, step.status) for step in facts.plan],
        "waiting": waiting.text if waiting is not None else None,
        "summary": facts.summary,
        "limit": facts.limit_text,
    }
    return {name: clean(value) for name, value in told.items()}


NAMES = [name for name in (*list_names(), *list_names("hard")) if name not in EXPORTS]


@pytest.mark.parametrize(
    "name", sized(NAMES, [f"{agent}-recorded" for agent in ("claude", "codex", "gemini")])
)
def test_checkpoints_say_what_the_record_said(tmp_path: Path, name: str) -> None:
    """Turn by turn, they give a successor the same facts; only secrets and long outputs are missing."""
    sample = lay_out(name, str(tmp_path))
    said = tell(read_facts(READERS[sample.agent], sample.path, agent=sample.agent))
    root = tmp_path / "project"
    root.mkdir()
    restored = lose(sample.agent, sample.path, str(root))
    assert f"{sample.agent}'s own record is gone" in restored.restored
    found = tell(restored)
    assert {key: found[key] for key in found if found[key] != said[key]} == {}
