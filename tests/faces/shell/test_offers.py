import os
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agent_relay.faces.shell._commands import ShellCompleter
from agent_relay.system.disk.folders import Folders, get_folders


@pytest.fixture
def folders(tmp_path: os.PathLike[str]) -> Folders:
    """A user's folders with one adapter of their own."""
    found = get_folders({"AGENT_RELAY_HOME": f"{tmp_path}/relay"})
    os.makedirs(f"{found.config}/adapters/zed")
    Path(f"{found.config}/adapters/zed/adapter.toml").touch()
    os.makedirs(f"{tmp_path}/tree/source")
    for name in ("setup.py", "source/deep.py", ".hidden", "with space.txt"):
        Path(f"{tmp_path}/tree/{name}").touch()
    return found


def _complete(folders: Folders, text: str) -> list[str]:
    cwd = os.path.join(os.path.dirname(folders.state), "..", "tree")
    completer = ShellCompleter(folders, os.path.normpath(cwd))
    return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]


def test_each_word_is_offered_what_can_stand_there(folders: Folders) -> None:
    """Commands, agents and paths are completed; prose is left alone."""
    offers = {
        "/un": ["/undo-handoff"],
        "/st": ["/status"],
        "/use z": ["zed"],
        "/order understudy z": ["zed"],
        "/use zed and pl": [],
        "/handoff re": ["retry"],
        "/help mod": ["model"],
        "look at @s": ["setup.py", "source/"],
        "look at @source/d": ["deep.py"],
        "@nowhere/x": [],
        "plain prose": [],
        "an/path": [],
    }
    assert {text: _complete(folders, text) for text in offers} == offers


def test_hidden_files_are_offered_to_whoever_asks_for_them(folders: Folders) -> None:
    """A dot in front says that a name is not meant unasked."""
    assert ".hidden" not in _complete(folders, "@")
    assert _complete(folders, "@.h") == [".hidden"]


def test_odd_names_cost_nobody_the_others(folders: Folders) -> None:
    """A link to itself, a name with control characters, a NUL that was pasted."""
    work = os.path.normpath(f"{folders.state}/../../tree")
    os.symlink("round", f"{work}/round")
    Path(f"{work}/\x1b[31mred").touch()
    assert _complete(folders, "@") == ["round", "setup.py", "source/", "with space.txt"]
    assert _complete(folders, "@\0/x") == []


def test_of_very_many_names_the_first_are_offered(folders: Folders) -> None:
    """A folder of a hundred thousand files is completed at every key."""
    work = os.path.normpath(f"{folders.state}/../../tree/source")
    for number in range(1000):
        Path(f"{work}/n{number:04}").touch()
    assert _complete(folders, "@source/n") == [f"n{number:04}" for number in range(200)]
