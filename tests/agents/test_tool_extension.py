"""Relay's tools as an extension in an agent's own folder: written on request, removed without a trace."""

import json
import os

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from agent_relay.agents.tool_extension import (
    ExtensionFile,
    install_extension,
    list_extensions,
    read_extension,
    remove_extension,
)
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.values import AgentName

RUNTIME = "/run/über relay"


def find(home: str, **variables: str) -> ExtensionFile:
    loaded = load_adapter(os.path.join(find_builtin_folder(), "gemini"), origin="built-in")
    [file] = list_extensions({AgentName("gemini"): loaded}, {"HOME": home, **variables})
    return file


def look(folder: str) -> dict[str, bytes]:
    """Every file and every folder below, as it is."""
    found = {}
    for place, folders, files in os.walk(folder):
        found |= {os.path.join(place, name): b"" for name in folders}
        for name in files:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.join(place, name)] = file.read()
    return found


@pytest.fixture(params=["", ".gemini", ".gemini/extensions", ".gemini/extensions/agent-relay"])
def home(request: pytest.FixtureRequest, tmp_path: object) -> str:
    """A home in which some of the folders are there already, and a user's own settings and extension."""
    os.makedirs(f"{tmp_path}/{request.param}", exist_ok=True)
    if "extensions" in request.param:
        os.makedirs(f"{tmp_path}/.gemini/extensions/mine")
        with open(f"{tmp_path}/.gemini/extensions/mine/gemini-extension.json", "w", encoding="utf-8") as file:
            file.write("{}")
    return str(tmp_path)


def test_nothing_is_left_after_it_was_removed(home: str) -> None:
    """Also the folders are those of before, and what is the user's was never touched."""
    before, file = look(home), find(home)
    assert read_extension(file, RUNTIME).state == "absent"
    assert install_extension(file, RUNTIME)
    assert read_extension(file, RUNTIME).state == "installed"
    assert not install_extension(file, RUNTIME), "it is up to date"
    with open(file.path, encoding="utf-8") as written:
        server = json.load(written)["mcpServers"]["agent_relay"]
    assert server["args"][2:] == [read_extension(file, RUNTIME).program, RUNTIME, "started-only"]
    assert os.stat(file.path).st_mode & 0o777 == 0o600
    assert remove_extension(file)
    assert look(home) == before
    assert not remove_extension(file)


def test_what_others_put_there_meanwhile_stays(home: str) -> None:
    """The agent itself keeps settings of an extension beside it."""
    file = find(home)
    install_extension(file, RUNTIME)
    other = f"{os.path.dirname(file.path)}/.env"
    with open(other, "w", encoding="utf-8"):
        pass
    assert remove_extension(file)
    assert os.path.exists(other)
    assert not os.path.exists(file.path)


def test_a_file_that_is_not_relays_is_left_alone(tmp_path: object) -> None:
    """Somebody may have an extension of that name."""
    file = find(str(tmp_path))
    os.makedirs(os.path.dirname(file.path))
    with open(file.path, "w", encoding="utf-8") as written:
        written.write('{"name": "agent-relay"}')
    assert read_extension(file, RUNTIME).state == "foreign"
    with pytest.raises(ConfigurationError, match="is not relay's"):
        install_extension(file, RUNTIME)
    assert not remove_extension(file)
    assert os.path.exists(file.path)


def test_an_older_one_is_renewed_and_still_knows_what_was_made_for_it(tmp_path: object) -> None:
    """An installation that moved, or one that is gone."""
    home = str(tmp_path)
    before, file = look(home), find(home)
    install_extension(file, "/run/elsewhere")
    assert read_extension(file, RUNTIME).state == "other"
    with open(file.path, encoding="utf-8") as written:
        text = written.read()
    with open(file.path, "w", encoding="utf-8") as written:
        written.write(text.replace("pipe.py", "gone.py"))
    assert read_extension(file, RUNTIME).state == "gone"
    assert install_extension(file, RUNTIME)
    assert read_extension(file, RUNTIME).state == "installed"
    remove_extension(file)
    assert look(home) == before


def test_a_folder_of_the_users_choice_is_used_and_one_that_cannot_be_is_refused(tmp_path: object) -> None:
    """The agent reads a variable for where its own things are; nothing is half made."""
    os.mkdir(f"{tmp_path}/else")
    file = find(str(tmp_path), GEMINI_CLI_HOME=f"{tmp_path}/else")
    assert file.path.startswith(f"{tmp_path}/else/.gemini/")
    with open(f"{tmp_path}/else/.gemini", "w", encoding="utf-8"):
        pass
    with pytest.raises(RelayError):
        install_extension(file, RUNTIME)
    with pytest.raises(ConfigurationError, match="for a variable"):
        install_extension(find(str(tmp_path)), "/run/$HOME")
    assert os.listdir(str(tmp_path)) == ["else"]
