"""An adapter's packet template is found, or the shared one is, or the error says which is missing."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import LoadedAdapter, build_renderer, load_adapter
from agent_relay.domain.documents.packet import Reason, ResumePacket
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.values import replace

PACKET = ResumePacket(
    packet_id="P",
    session_id="S",
    sequence=1,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    previous_agent="alpha",
    target_agent="beta",
    checkpoint_reason=Reason.MANUAL,
    task="the task",
)


def loaded(folder: Path, *, template: str = "resume.md.j2") -> LoadedAdapter:
    """A built-in adapter moved to `folder`."""
    real = load_adapter(f"{find_builtin_folder()}/codex")
    return LoadedAdapter(replace(real.adapter, template=template), str(folder), real.rules_path, "user")


def test_without_a_template_of_its_own_the_shared_one_is_used(tmp_path: Path) -> None:
    """A new agent is a folder with one file to begin with."""
    assert "## Task\n```text\nthe task\n```" in build_renderer(loaded(tmp_path), "")(PACKET)


def test_an_own_template_is_used(tmp_path: Path) -> None:
    """Under the name the adapter gives it."""
    (tmp_path / "mine.j2").write_text("{{ title }}: {{ packet.task }}")
    text = build_renderer(loaded(tmp_path, template="mine.j2"), "")(PACKET)
    assert text == "<handoff-context>\nCodex: the task\n</handoff-context>\n"


def test_a_named_template_that_is_missing_or_no_text_is_an_error(tmp_path: Path) -> None:
    """Falling back silently would hide the misspelling."""
    with pytest.raises(ConfigurationError, match=r"mine\.j2 is missing"):
        build_renderer(loaded(tmp_path, template="mine.j2"), "")
    (tmp_path / "mine.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        build_renderer(loaded(tmp_path, template="mine.j2"), "")
