import os
import re
import shutil

import pytest

from agent_relay.agents.adapter_folders import project_adapters
from agent_relay.agents.adapters import (
    LoadedAdapter,
    find_program,
    fit_installed,
    is_signed_in,
    list_default_roster,
    load_adapter,
    load_rules,
)
from agent_relay.agents.catalog import find_trusted, load_adapters, read_catalog, trust_folder
from agent_relay.domain.documents.adapter import Adapter
from agent_relay.domain.errors import ConfigurationError, WrongUseError
from agent_relay.system.disk.folders import Folders
from tests.house import tree

ADAPTER = """
name = "{name}"
title = "{title}"
quit = [{{ signal = "SIGTERM", wait_s = 1 }}]
[launch]
program = "{program}"
[deliver]
packet_by = "paste"
opening = "go on"
"""

_DEEP = f"""
[[progress]]
source = "hook"
means = "prompt"
where = {{ matches = {{ text = "{"(" * 2000}a{")" * 2000}" }} }}
"""


@pytest.fixture
def folders(tmp_path: os.PathLike[str]) -> Folders:
    """A user's private folders, empty."""
    os.chmod(tmp_path, 0o700)
    return Folders(f"{tmp_path}/run", f"{tmp_path}/state", f"{tmp_path}/config")


def _write_adapter(place: str, name: str, *, title: str = "Zed", program: str = "zed") -> str:
    folder = os.path.join(place, name)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as stream:
        stream.write(ADAPTER.format(name=name, title=title, program=program))
    return folder


def _build(**changes: object) -> Adapter:
    plain = {
        "name": "zed",
        "title": "Zed",
        "quit": [{"signal": "SIGTERM", "wait_s": 1}],
        "launch": {"program": "zed"},
        "deliver": {"packet_by": "paste", "opening": "go on"},
    }
    return Adapter.parse({**plain, **changes})


def test_the_shipped_adapters_all_load(folders: Folders) -> None:
    """One misspelt key in one of them would stop every command."""
    found = load_adapters(folders)
    assert set(found) == set(tree.adapter_names())
    assert {"demo", "understudy"} & set(list_default_roster(found)) == set()


def test_what_an_adapter_declares_is_what_it_can_do(folders: Folders) -> None:
    """A handoff that needs a word goes to whoever declares it: none may be claimed, or forgotten."""
    for loaded in load_adapters(folders).values():
        adapter = loaded.adapter
        told = {
            "text": True,
            "conversation": bool(adapter.launch.resume_args),
            "model": bool(adapter.launch.model_args),
            "headless": adapter.headless is not None,
        }
        assert set(adapter.accepts) == {word for word, can in told.items() if can}, adapter.name
        left = {
            "edits": "edit" in adapter.capabilities,
            "commands": "shell" in adapter.capabilities,
            "document": adapter.narrative is not None,
            "record": adapter.transcript is not None,
        }
        assert set(adapter.produces) == {word for word, can in left.items() if can}, adapter.name


def test_a_users_adapter_stands_beside_and_above_the_shipped_ones(folders: Folders) -> None:
    """Teaching relay an agent takes a folder, and so does correcting one."""
    _write_adapter(f"{folders.config}/adapters", "zed")
    _write_adapter(f"{folders.config}/adapters", "demo", title="Mine")
    found = load_adapters(folders)
    assert found["zed"].origin == "user"
    assert (found["demo"].origin, found["demo"].adapter.title) == ("user", "Mine")


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("adapter.toml", "name = [", r"zed/adapter\.toml is not TOML"),
        ("adapter.toml", 'name = "zed"\n', r"zed/adapter\.toml: title"),
        ("adapter.toml", None, "is not an adapter"),
        ("rules.toml", "[[limit", r"zed/rules\.toml is not TOML"),
        ("adapter.toml", f"name = {'1' * 5000}", r"zed/adapter\.toml cannot be read: .*4300 digits"),
        ("rules.toml", _DEEP, r"zed/rules\.toml: progress\.0\.where\.matches\.text: .*recursion"),
        ("rules.toml", 'nonsense = "yes"\n', r"zed/rules\.toml: nonsense"),
        ("resume.md.j2", "{% if %}", "template"),
    ],
)
def test_an_adapter_that_cannot_be_used_is_named_and_costs_no_other_agent(
    folders: Folders, file: str, text: str | None, why: str
) -> None:
    """One slip in an experiment of the user's stopped every agent there is."""
    place = f"{folders.config}/adapters"
    folder = _write_adapter(place, "zed")
    _write_adapter(place, "why")
    if text is None:
        os.unlink(f"{folder}/{file}")
        os.mkdir(f"{folder}/more")
    else:
        with open(f"{folder}/{file}", "w", encoding="utf-8") as stream:
            stream.write(text)
    catalog = read_catalog(folders)
    assert set(catalog.adapters) == {*tree.adapter_names(), "why"}
    assert [one.name for one in catalog.broken] == ["zed"]
    assert re.search(why, catalog.broken[0].sentence)
    assert "zed" in catalog
    with pytest.raises(ConfigurationError, match=why):
        catalog.get("zed")


def test_a_link_that_leads_to_itself_costs_no_other_adapter(folders: Folders) -> None:
    """It hid every adapter of the user's, which then was no agent anybody knows."""
    place = f"{folders.config}/adapters"
    _write_adapter(place, "zed")
    os.symlink("loop", f"{place}/loop")
    catalog = read_catalog(folders)
    assert "zed" in catalog.adapters
    assert [one.name for one in catalog.broken] == ["loop"]
    assert "Too many levels of symbolic links" in catalog.broken[0].sentence


def test_a_broken_correction_does_not_bring_back_what_it_corrects(folders: Folders) -> None:
    """Whoever took a flag away from an agent does not want it started with that flag."""
    folder = _write_adapter(f"{folders.config}/adapters", "demo")
    with open(f"{folder}/adapter.toml", "a", encoding="utf-8") as stream:
        stream.write("x =\n")
    catalog = read_catalog(folders)
    assert "demo" not in catalog.adapters
    assert [one.name for one in catalog.broken] == ["demo"]


def test_a_trusted_project_adapter_that_cannot_be_used_is_left_out(
    folders: Folders, tmp_path: os.PathLike[str]
) -> None:
    """Trust says that it may run, not that it can."""
    root = f"{tmp_path}/project"
    folder = _write_adapter(project_adapters(root), "zed")
    with open(f"{folder}/adapter.toml", "a", encoding="utf-8") as stream:
        stream.write("submit_delay = 'soon'\n")
    trust_folder(project_adapters(root), state=folders.state)
    catalog = read_catalog(folders, root=root)
    assert set(catalog.adapters) == set(tree.adapter_names())
    assert [one.name for one in catalog.broken] == ["zed"]


def test_a_list_of_trust_that_cannot_be_read_is_named(folders: Folders, tmp_path: os.PathLike[str]) -> None:
    """It lies beside every project; no agent of the user's hangs on it."""
    root = f"{tmp_path}/project"
    _write_adapter(project_adapters(root), "zed")
    os.makedirs(f"{folders.state}/trust.json", mode=0o700)
    catalog = read_catalog(folders, root=root)
    assert set(catalog.adapters) == set(tree.adapter_names())
    assert [one.name for one in catalog.broken] == [""]
    assert "trust.json" in catalog.broken[0].sentence


def test_an_unknown_agent_is_told_the_agents_that_can_work(folders: Folders) -> None:
    """A scripted agent is of no use to somebody who mistyped the name of a real one."""
    with pytest.raises(WrongUseError, match="there is no agent 'bar'") as caught:
        read_catalog(folders).get("bar")
    assert caught.value.hint == f"Known: {', '.join(tree.agent_names())}"


def test_a_projects_adapter_is_ignored_until_trusted(folders: Folders, tmp_path: os.PathLike[str]) -> None:
    """Cloning a repository and starting an agent in it must not run what the repository names."""
    root = f"{tmp_path}/project"
    place = project_adapters(root)
    _write_adapter(place, "zed")
    assert "zed" not in load_adapters(folders, root=root)
    trust_folder(place, state=folders.state)
    assert load_adapters(folders, root=root)["zed"].origin == "project"


def test_trust_ends_with_the_first_changed_byte(folders: Folders, tmp_path: os.PathLike[str]) -> None:
    """The next pull may bring another program under the trusted name."""
    root = f"{tmp_path}/project"
    place = project_adapters(root)
    folder = _write_adapter(place, "zed")
    trust_folder(place, state=folders.state)
    with open(f"{folder}/adapter.toml", "a", encoding="utf-8") as stream:
        stream.write("# new\n")
    assert "zed" not in load_adapters(folders, root=root)


def test_what_is_used_is_the_copy_that_was_trusted(folders: Folders, tmp_path: os.PathLike[str]) -> None:
    """Between the check and the start somebody could exchange the file."""
    root = f"{tmp_path}/project"
    place = project_adapters(root)
    _write_adapter(place, "zed")
    trust_folder(place, state=folders.state)
    assert load_adapters(folders, root=root)["zed"].folder.startswith(f"{folders.state}/trusted/")


def test_a_symlink_cannot_be_trusted(folders: Folders, tmp_path: os.PathLike[str]) -> None:
    """What it points at is not part of what was looked at."""
    place = f"{tmp_path}/adapters"
    folder = _write_adapter(place, "zed")
    os.symlink("/etc/hostname", f"{folder}/more")
    with pytest.raises(ConfigurationError, match="neither a file nor a folder"):
        trust_folder(place, state=folders.state)


def test_a_torn_trust_file_trusts_nobody(folders: Folders, tmp_path: os.PathLike[str]) -> None:
    """The safe reading of damage is no."""
    place = f"{tmp_path}/adapters"
    _write_adapter(place, "zed")
    trust_folder(place, state=folders.state)
    assert find_trusted(place, state=folders.state) is not None
    with open(f"{folders.state}/trust.json", "w", encoding="utf-8") as stream:
        stream.write('{"')
    assert find_trusted(place, state=folders.state) is None


def test_an_error_names_the_adapters_file_and_key(tmp_path: os.PathLike[str]) -> None:
    """Adapters are written by hand, by people who never read this code."""
    folder = _write_adapter(f"{tmp_path}", "zed")
    with open(f"{folder}/adapter.toml", "a", encoding="utf-8") as stream:
        stream.write('submit_delay = "soon"\n')
    with pytest.raises(ConfigurationError, match=r"zed/adapter\.toml: deliver\.submit_delay: "):
        load_adapter(folder)


def test_a_folder_and_its_adapter_have_one_name(tmp_path: os.PathLike[str]) -> None:
    """Two names for one agent would be two agents in every list."""
    folder = _write_adapter(f"{tmp_path}", "zed")
    shutil.move(folder, f"{tmp_path}/other")
    with pytest.raises(ConfigurationError, match="not the name of its folder"):
        load_adapter(f"{tmp_path}/other")


def test_a_program_is_found_on_the_given_path_or_beside_the_adapter(tmp_path: os.PathLike[str]) -> None:
    """The daemon's own PATH is not the user's."""
    program = f"{tmp_path}/zed"
    with open(program, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\n")
    os.chmod(program, 0o700)
    loaded = LoadedAdapter(_build(), f"{tmp_path}", "", "user")
    assert find_program(loaded, {"PATH": f"{tmp_path}"}) == program
    assert find_program(loaded, {"PATH": "/nonexistent"}) is None
    beside = LoadedAdapter(_build(launch={"program": "./zed"}), f"{tmp_path}", "", "user")
    assert find_program(beside, {"PATH": "/nonexistent"}) == program


def test_signed_in_means_a_key_or_the_agents_own_file(tmp_path: os.PathLike[str]) -> None:
    """A handoff to an agent that asks for a password stops the work."""
    adapter = _build(keys=["ZED_KEY"], sign_in_files=["{ZED_HOME:-{home}/.zed}/auth.json", "~/.zedrc"])
    home = f"{tmp_path}"
    assert not is_signed_in(adapter, {}, home)
    assert not is_signed_in(adapter, {"ZED_KEY": ""}, home)
    assert is_signed_in(adapter, {"ZED_KEY": "x"}, home)
    os.mkdir(f"{home}/.zed")
    with open(f"{home}/.zed/auth.json", "w", encoding="utf-8"):
        pass
    assert is_signed_in(adapter, {}, home)
    assert not is_signed_in(adapter, {"ZED_HOME": f"{home}/elsewhere"}, home)
    assert is_signed_in(adapter, {"ZED_HOME": f"{home}/.zed"}, home)
    unset = _build(sign_in_files=["{ZED_HOME}/.zed/auth.json"])
    assert not is_signed_in(unset, {}, home)
    assert is_signed_in(unset, {"ZED_HOME": home}, home)


def test_an_agent_that_names_no_sign_in_needs_none() -> None:
    """The demo agents have no account."""
    assert is_signed_in(_build(), {}, "/nonexistent")


@pytest.mark.parametrize(
    ("version", "args", "states"), [("2.4.0", (), 1), ("2.5.1", ("--new",), 2), ("", (), 2)]
)
def test_an_adapter_is_fitted_to_the_version_that_is_installed(
    tmp_path: os.PathLike[str], version: str, args: tuple[str, ...], states: int
) -> None:
    """A version's own arguments and rules hold for it alone; rules hold where nobody knows it, too."""
    folder = _write_adapter(f"{tmp_path}", "zed", program=f"./versions/{version or 'zed'}")
    os.mkdir(f"{folder}/versions")
    with open(f"{folder}/versions/{version or 'zed'}", "w", encoding="utf-8") as program:
        os.fchmod(program.fileno(), 0o700)
    with open(f"{folder}/adapter.toml", "a", encoding="utf-8") as file:
        file.write('[[versions]]\nfrom = "2.5"\nlaunch = { args = ["--new"] }\n')
    with open(f"{folder}/rules.toml", "w", encoding="utf-8") as file:
        file.write('[[states]]\nid = "old"\nstate = "busy"\npattern = "x"\n')
        file.write('[[states]]\nid = "new"\nfrom = "2.5"\nstate = "busy"\npattern = "y"\n')
    fitted = fit_installed(load_adapter(folder), {}, f"{tmp_path}/none")
    assert (fitted.version, fitted.adapter.launch.args) == (version, args)
    assert len(load_rules(fitted).states) == states
