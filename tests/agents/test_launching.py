"""What an agent is started with besides its arguments: files its adapter renders for the leg."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from agent_relay.agents.launch import LegStart, build_values, prepare_launch
from agent_relay.domain.session import Leg

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
FOLDER = os.path.join(find_builtin_folder(), "claude")
COUNTS_DOWN = "autoContinueAtUsageLimit"


def render_settings(tmp_path: Path, *, may_continue: bool, own: str = "") -> dict[str, object]:
    """The settings the agent of the adapter is started with; `own` are its user's."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(own or "{}")
    loaded = load_adapter(FOLDER, origin="built-in")
    leg = Leg("L1", "claude", 1, starting_at=NOW, native_id="7")
    environ = {"PATH": str(program.parent), "HOME": str(tmp_path)}
    start = LegStart(str(tmp_path), str(tmp_path), environ, may_continue=may_continue)
    prepare_launch(loaded, leg, start, values=build_values(loaded, leg, start), withheld=())
    found: dict[str, object] = json.loads((tmp_path / "settings.json").read_text())
    return found


def test_an_agent_that_may_never_go_on_by_itself_is_told_so_when_it_starts(tmp_path: Path) -> None:
    """Its timer would run on while no daemon lives that could cancel it."""
    settings = render_settings(tmp_path, may_continue=False)
    assert settings[COUNTS_DOWN] is False
    assert "StopFailure" in str(settings["hooks"])


@pytest.mark.parametrize("own", ["", '{"autoContinueAtUsageLimit": false}'])
def test_otherwise_its_users_own_settings_decide(tmp_path: Path, own: str) -> None:
    """Relay forbids; it never allows what somebody switched off."""
    assert COUNTS_DOWN not in render_settings(tmp_path, may_continue=True, own=own)
