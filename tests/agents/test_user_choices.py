"""The tool servers that a user has for an agent are switched off by name, all or the run fails."""

import json
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.agents.user_choices import build_server_args
from agent_relay.domain.documents.adapter import UserServers
from agent_relay.domain.errors import RelayError

SPEC = UserServers(
    paths=("{CARDS_HOME:-{home}/.cards}/config.toml", "{home}/more.toml"),
    table="servers",
    each="{server}={enabled=false}",
    args=("-c", "servers={{servers}}"),
)


def build(home: Path, *files: str) -> tuple[str, ...]:
    """The arguments for a user whose files hold this, in the order of their paths."""
    (home / ".cards").mkdir(exist_ok=True)
    for name, text in zip((".cards/config.toml", "more.toml"), files, strict=False):
        (home / name).write_text(text, encoding="utf-8")
    return build_server_args(SPEC, {"home": str(home)}, {})


def test_every_server_of_every_file_is_named_once(tmp_path: Path) -> None:
    """What names none, or is not there, adds nothing."""
    assert build(tmp_path, "model = 'x'") == ()
    both = build(tmp_path, "[servers.a]\nx=1\n[servers.'b.c']\n", "[servers.a]\n[servers.d]\n")
    assert both == ("-c", 'servers={"a"={enabled=false},"b.c"={enabled=false},"d"={enabled=false}}')
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "config.toml").write_text("[servers.z]")
    assert '"z"=' in build_server_args(SPEC, {"home": "/nowhere"}, {"CARDS_HOME": str(moved)})[1]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_no_name_can_end_its_string_or_stand_for_something_else(name: str) -> None:
    """The argument holds exactly that name, and no placeholder of a launch."""
    quoted = json.dumps(name)
    if "\\ud" in quoted or "\x7f" in quoted:
        return
    with tempfile.TemporaryDirectory() as folder:
        (_, word) = build(Path(folder), f"[servers.{quoted}]\n")
    assert tomllib.loads(word) == {"servers": {name: {"enabled": False}}}
    assert "{cwd}" not in word


@pytest.mark.parametrize(
    "text", ["[servers", "a = " + "[" * 100_000, "#" * 2_000_000, "[servers.a]\n[servers.a]"]
)
def test_a_file_that_cannot_be_understood_is_a_clear_failure(tmp_path: Path, text: str) -> None:
    """Nobody knows then which servers the agent would start."""
    with pytest.raises(RelayError, match=r"config\.toml"):
        build(tmp_path, text)


def test_too_many_servers_are_a_clear_failure(tmp_path: Path) -> None:
    """No argument of a process may be longer than 128 kB."""
    with pytest.raises(RelayError, match="servers"):
        build(tmp_path, "".join(f"[servers.{'n' * 300}{number}]\n" for number in range(400)))
