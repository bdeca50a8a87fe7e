"""Where the agents' records are is read off adapters that come with us without checking them whole."""

import shutil
from pathlib import Path

import pytest

from agent_relay.agents.catalog import load_adapters
from agent_relay.system.disk.folders import Folders
from agent_relay.usage.gather import load_specs
from agent_relay.usage.record_files import UsageSpec

ADAPTER = """name = "{name}"
title = "Yours"
[launch]
program = "yours"
[deliver]
packet_by = "paste"
opening = "Go on."
[[quit]]
keys = "q"
wait_s = 1
[transcript]
reader = "demo-jsonl"
folder = "{{home}}/yours"
pattern = "*.jsonl"
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Of a user without adapters of their own."""
    return Folders(*(f"{tmp_path}/{name}" for name in ("run", "state", "config", "cache")))


def _tell(spec: UsageSpec) -> tuple[str, str, str, tuple[str, ...]]:
    return spec.reader, spec.folder, spec.pattern, spec.usage


def _checked(folders: Folders, root: str) -> dict[str, tuple[str, str, str, tuple[str, ...]]]:
    adapters = load_adapters(folders, root=root)
    return {name: _tell(one.adapter.transcript) for name, one in adapters.items() if one.adapter.transcript}


def test_our_own_adapters_say_the_same_unchecked(folders: Folders, tmp_path: Path) -> None:
    """Checking them costs a library, and whoever changes one has this test."""
    found = load_specs(folders, root=f"{tmp_path}/work", problems=[])
    assert {name: _tell(spec) for name, spec in found.items()} == _checked(folders, f"{tmp_path}/work")
    assert list(found) == sorted(found)
    assert {"claude", "codex", "gemini", "opencode"} <= set(found)


def test_a_users_adapter_is_one_of_them_and_takes_the_place_of_ours(folders: Folders, tmp_path: Path) -> None:
    """Someone who keeps the records elsewhere says so in an adapter of the same name."""
    for name in ("codex", "yours"):
        path = tmp_path / "config/adapters" / name / "adapter.toml"
        path.parent.mkdir(parents=True)
        path.write_text(ADAPTER.format(name=name))
    found = load_specs(folders, root=f"{tmp_path}/work", problems=[])
    assert _tell(found["codex"]) == _tell(found["yours"]) == ("demo-jsonl", "{home}/yours", "*.jsonl", ())
    assert {name: _tell(spec) for name, spec in found.items()} == _checked(folders, f"{tmp_path}/work")


def test_what_cannot_be_read_of_a_users_adapters_is_told_of(folders: Folders, tmp_path: Path) -> None:
    """Figures without an agent's would look right; a link that leads nowhere is no empty folder."""
    place = tmp_path / "config/adapters"
    (place / "yours").mkdir(parents=True)
    for text in ("name = 1", "[transcript]\nreader = 1", "nothing", ""):
        (place / "yours/adapter.toml").write_text(text)
        if not text:
            shutil.rmtree(place)
            place.symlink_to("adapters")
        problems: list[str] = []
        found = load_specs(folders, root=f"{tmp_path}/work", problems=problems)
        assert {"claude", "codex", "gemini", "opencode"} <= set(found)
        assert (text, [f"{place}" in problem for problem in problems]) == (text, [True])
