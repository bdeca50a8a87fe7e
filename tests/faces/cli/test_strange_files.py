"""Where a file is expected, anything may stand: the commands come back, with a sentence and a status."""

import os
from pathlib import Path

import pytest

from agent_relay.system.config_file import FILE_NAME
from tests.faces.cli_run import World

pytestmark = [pytest.mark.size("test"), pytest.mark.timeout(240)]


def make_config_folder(world: World) -> Path:
    """Where the user's `config.toml` stands."""
    folder = Path(world.home) / "config"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def test_a_pipe_for_a_configuration_is_told_and_not_waited_for(world: World) -> None:
    """Nobody writes to it."""
    os.mkfifo(make_config_folder(world) / FILE_NAME)
    for words in ("order demo", "doctor"):
        done = world.run(*words.split())
        assert "is not a regular file" in done.err + done.out
        assert done.status != 0


def test_a_configuration_too_deep_to_read_is_a_sentence_and_78(world: World) -> None:
    """A crash report would tell its reader nothing."""
    (make_config_folder(world) / FILE_NAME).write_text(f"order = {'[' * 100_000}{']' * 100_000}\n")
    done = world.run("order", "demo")
    assert done.status == 78
    assert "its lists or tables are nested too deeply" in done.err


def test_a_transcript_or_a_packet_that_is_a_pipe_is_told(world: World) -> None:
    """`--transcript` names any path, and so does `packet import`."""
    pipe = f"{world.cwd}/pipe.json"
    os.mkfifo(pipe)
    for words in ("build --agent demo --to demo --transcript", "import"):
        done = world.run("packet", *words.split(), pipe)
        assert done.status != 0
        assert "is not a regular file" in done.err


def test_a_transcript_without_a_word_of_the_agents_makes_no_packet(world: World) -> None:
    """A packet that knows nothing looks like one; what was named was empty, or another agent's."""
    path = Path(world.cwd) / "notes.jsonl"
    for text in ("", "some notes\nmore notes\n", '{"type": "session_meta", "payload": {}}\n'):
        path.write_text(text)
        done = world.run("packet", "build", "--agent", "claude", "--to", "codex", "--transcript", str(path))
        assert (done.status, done.out) == (1, "")
        assert f"there is no packet to build from {path}: it contains no prompt or work of claude" in done.err
        assert "agent-relay sessions --native" in done.err
