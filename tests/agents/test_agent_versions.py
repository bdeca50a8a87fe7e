"""Which version of an agent is installed: from files alone, for an answer that costs a start nothing."""

import json
import os
from pathlib import Path

import pytest

from agent_relay.agents.agent_versions import claim_first_notice, find_installed_version, note_answer

PACKAGE = "@anthropic-ai/claude-code"


def make_program(path: Path) -> str:
    """A program that fails whoever runs it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    return str(path)


def make_package(folder: Path, name: str, version: object) -> None:
    """The file by which npm knows an installed package."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))


def test_the_package_a_link_on_the_path_leads_into_tells_it(tmp_path: Path) -> None:
    """As npm installs agents: a link to a program within the package's folder."""
    folder = tmp_path / "lib/node_modules/@anthropic-ai/claude-code"
    make_package(folder, PACKAGE, "2.1.330")
    program = make_program(folder / "bin/claude.exe")
    (tmp_path / "bin").mkdir()
    os.symlink(program, tmp_path / "bin/claude")
    assert find_installed_version(str(tmp_path / "bin/claude"), PACKAGE, str(tmp_path / "none")) == "2.1.330"


@pytest.mark.parametrize(
    ("place", "version"),
    [
        (".local/share/claude/versions/2.1.340", "2.1.340"),
        ("Cellar/codex/0.169.0/bin/codex", "0.169.0"),
        (".pyenv/versions/3.11.7/bin/aider", ""),
        ("bin/claude", ""),
    ],
)
def test_the_path_tells_it_as_installers_lay_it_out(tmp_path: Path, place: str, version: str) -> None:
    """The version of an interpreter above it is not the agent's."""
    program = make_program(tmp_path / place)
    assert find_installed_version(program, PACKAGE, str(tmp_path / "none")) == version


@pytest.mark.parametrize("contents", ["", "[]", "{", '{"name": 3}', "[" * 100_000])
def test_another_package_or_a_broken_file_tells_nothing(tmp_path: Path, contents: str) -> None:
    """What others wrote may be anything."""
    program = make_program(tmp_path / "some/bin/claude")
    (tmp_path / "some/package.json").write_text(contents)
    make_package(tmp_path, "my-project", "9.9.9")
    assert find_installed_version(program, PACKAGE, str(tmp_path / "none")) == ""


def test_an_answer_is_known_until_the_program_s_file_is_another(tmp_path: Path) -> None:
    """An upgrade in place must not leave an old answer behind."""
    program, known = make_program(tmp_path / "claude"), str(tmp_path / "known.json")
    note_answer(program, "2.1.330 (Claude Code)", known)
    assert find_installed_version(program, PACKAGE, known) == "2.1.330"
    make_program(tmp_path / "claude")
    os.utime(program, ns=(1, 1))
    assert find_installed_version(program, PACKAGE, known) == ""


def test_an_answer_without_a_version_is_none(tmp_path: Path) -> None:
    """Some programs answer with words."""
    program, known = make_program(tmp_path / "claude"), str(tmp_path / "known.json")
    note_answer(program, "no such option", known)
    assert not os.path.exists(known)


@pytest.mark.parametrize("damage", ["", "[]", '{"answers": [], "told": 3}', "{"])
def test_a_damaged_memory_is_an_empty_one(tmp_path: Path, damage: str) -> None:
    """The worst that follows is one line said twice."""
    program, known = make_program(tmp_path / "claude"), tmp_path / "known.json"
    known.write_text(damage)
    assert find_installed_version(program, PACKAGE, str(known)) == ""
    assert claim_first_notice("claude", "2.1.340", str(known))
    assert not claim_first_notice("claude", "2.1.340", str(known))


def test_each_version_is_told_once_of_each_agent(tmp_path: Path) -> None:
    """A line at every start is a line nobody reads."""
    known = str(tmp_path / "known.json")
    claims = [
        claim_first_notice(agent, version, known)
        for agent, version in [
            ("claude", "2"),
            ("claude", "2"),
            ("codex", "2"),
            ("claude", "3"),
            ("claude", "3"),
        ]
    ]
    assert claims == [True, False, True, True, False]


def test_nobody_is_told_where_that_cannot_be_remembered(tmp_path: Path) -> None:
    """Else it would be said at every start."""
    (tmp_path / "file").write_text("")
    assert not claim_first_notice("claude", "3", str(tmp_path / "file/known.json"))
