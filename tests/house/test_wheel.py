"""What is installed is what was built here, data included."""

import os
import stat
import zipfile

import pytest

from agent_relay.domain.documents.adapter import Adapter
from agent_relay.system.config_file import parse_document, read_toml
from tests.house import tree
from tests.support.wheel import build_wheel


@pytest.mark.size("test")
def test_the_wheel_carries_adapters_example_and_phrases_and_nothing_else(tmp_path: os.PathLike[str]) -> None:
    """Without them an installed relay knows no agent and builds no packet; other names are others'."""
    with zipfile.ZipFile(build_wheel(f"{tmp_path}")) as wheel:
        names = set(wheel.namelist())
        program = wheel.getinfo("agent_relay/_adapters/demo/agent.py")
    for name in tree.adapter_names():
        assert f"agent_relay/_adapters/{name}/adapter.toml" in names
        assert f"agent_relay/_adapters/{name}/rules.toml" in names
    assert "agent_relay/_adapters/resume.md.j2" in names
    assert "agent_relay/_example/agent-relay.json" in names
    assert "agent_relay/packet/extract/phrases.toml" in names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"agent_relay"}
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
    assert stat.S_IMODE(program.external_attr >> 16) & 0o111


def test_every_adapter_parses_and_brings_what_it_names() -> None:
    """A template that is missing would be found out at a handoff."""
    for name in tree.adapter_names():
        folder = os.path.join(tree.ADAPTERS, name)
        adapter = parse_document(read_toml(f"{folder}/adapter.toml"), Adapter, f"{folder}/adapter.toml")
        wanted = {"rules.toml", adapter.template, *(file.template for file in adapter.launch.files)}
        shared = {"resume.md.j2"}
        assert wanted - shared - set(os.listdir(folder)) == set(), name
        assert adapter.quit, name
