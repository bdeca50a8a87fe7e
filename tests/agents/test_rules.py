"""An adapter's rules are refused where one of them could hold the daemon."""

import os
import shutil

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.domain.errors import ConfigurationError


def _copy_demo(place: str, *, starts: str) -> str:
    """The demo agent's adapter as a user's own, with a limit rule of this pattern."""
    folder = shutil.copytree(f"{find_builtin_folder()}/demo", f"{place}/demo")
    with open(f"{folder}/rules.toml", encoding="utf-8") as file:
        text = file.read()
    with open(f"{folder}/rules.toml", "w", encoding="utf-8") as file:
        file.write(
            f"{text}\n[[limits]]\nid = 'mine'\nfeeds = ['limit-row']\npattern = '{starts}'\nkind = 'limit'\n"
            "scope = 'account'\naccepts = ['out']\nrejects = ['in']\n"
        )
    return folder


@pytest.mark.size("test")
@pytest.mark.parametrize(
    "slow", [r"^(?:\w+\s?)+limit$", r"\s+$", r"spent: *(?P<sum>.*) *of *(?P<all>.*) *now$"]
)
def test_a_pattern_that_takes_longer_than_its_text_is_refused_by_name(
    tmp_path: os.PathLike[str], slow: str
) -> None:
    """An agent's output could hold the daemon with it for ever."""
    loaded = load_adapter(_copy_demo(str(tmp_path), starts=slow))
    with pytest.raises(ConfigurationError, match=r"rules\.toml: limits\.mine\.pattern: .*takes longer"):
        load_rules(loaded)


def test_a_users_own_adapter_with_ordinary_patterns_is_taken(tmp_path: os.PathLike[str]) -> None:
    """What people write for their agents looks like what we do."""
    loaded = load_adapter(_copy_demo(str(tmp_path), starts=r"You.ve hit your (?P<model>\w+) limit"))
    assert load_rules(loaded).limits[-1].id == "mine"


def test_a_pattern_that_is_none_is_refused_by_name(tmp_path: os.PathLike[str]) -> None:
    """It would first be missed when the limit is there."""
    loaded = load_adapter(_copy_demo(str(tmp_path), starts="(out"))
    with pytest.raises(
        ConfigurationError, match=r"rules\.toml: limits\.mine\.pattern: '\(out' is no pattern"
    ):
        load_rules(loaded)


def test_a_condition_of_an_adapter_that_is_no_pattern_is_refused_by_name(
    tmp_path: os.PathLike[str],
) -> None:
    """No record would ever satisfy it."""
    folder = shutil.copytree(f"{find_builtin_folder()}/demo", f"{tmp_path}/demo")
    with open(f"{folder}/adapter.toml", "a", encoding="utf-8") as file:
        file.write(
            "[[sources]]\nrole = 'log'\nframing = 'lines'\npath = '/log'\n"
            "names_where = { matches = { text = '[' } }\n"
        )
    with pytest.raises(ConfigurationError, match=r"names_where\.matches\.text: '\[' is no pattern"):
        load_adapter(folder)
