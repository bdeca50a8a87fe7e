"""Two of relay's own processes at one file: the second one waits, and loses nothing of the first one's."""

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.catalog import find_trusted, fingerprint_folder, trust_folder
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.store.packets import save_beside_packets
from agent_relay.system.config_file import create_config, read_user_config, write_model, write_order
from agent_relay.system.disk.files import write_atomic
from agent_relay.system.disk.locks import append_line, lock_folder, open_alone

_LOOK_S = 0.5


@contextlib.contextmanager
def begun(work: Callable[[], object], folder: Path) -> Iterator[None]:
    """`work` was begun while another process has the folder, waits within, and is done after it."""
    thread = threading.Thread(target=work)
    with lock_folder(str(folder), "somebody has it"):
        thread.start()
        thread.join(_LOOK_S)
        assert thread.is_alive()
        yield
    thread.join(60)
    assert not thread.is_alive()


def make_private(path: Path) -> Path:
    """A folder of ours."""
    path.mkdir(mode=0o700)
    return path


def make_adapters(path: Path) -> str:
    """A project's own adapters."""
    (path / "zed").mkdir(parents=True)
    (path / "zed" / "adapter.toml").write_text(f"# of {path}\n")
    return str(path)


@pytest.mark.size("test")
def test_a_model_and_an_order_set_at_once_are_both_set(tmp_path: Path) -> None:
    """Each read the file before the other one had written it, and the second one's was all there was."""
    config = make_private(tmp_path / "config")
    with begun(lambda: write_model(str(config), "ann", "small"), config):
        (config / "config.toml").write_text("patience_s = 60\n")
    with begun(lambda: write_order(str(config), ("ann", "bob")), config):
        (config / "config.toml").write_text((config / "config.toml").read_text() + "[handoff]\n")
    found = read_user_config(str(config))
    assert (found.patience_s, found.order, found.get_agent("ann").model) == (60, ("ann", "bob"), "small")


def test_a_first_configuration_replaces_none_that_has_just_come(tmp_path: Path) -> None:
    """`init` and `order` at once: the template stood where the order had been written."""
    config, made = make_private(tmp_path / "config"), []
    with begun(lambda: made.append(create_config(str(config), "# nothing\n")), config):
        (config / "config.toml").write_text('order = ["ann"]\n')
    assert made == [False]
    assert read_user_config(str(config)).order == ("ann",)


def test_two_projects_trusted_at_once_are_both_trusted(tmp_path: Path) -> None:
    """One of them was told so, and ignored."""
    state = make_private(tmp_path / "state")
    one, other = make_adapters(tmp_path / "one"), make_adapters(tmp_path / "other")
    trust_folder(one, state=str(state))
    both = json.loads((state / "trust.json").read_text())
    (state / "trust.json").unlink()
    with begun(lambda: trust_folder(other, state=str(state)), state):
        (state / "trust.json").write_text(json.dumps(both))
    assert find_trusted(one, state=str(state)) is not None
    assert find_trusted(other, state=str(state)) is not None


def test_what_was_not_shown_is_not_trusted(tmp_path: Path) -> None:
    """An agent at work in the repository can change the files while their user reads the list of them."""
    state, place = make_private(tmp_path / "state"), make_adapters(tmp_path / "adapters")
    shown, _ = fingerprint_folder(place)
    (tmp_path / "adapters" / "zed" / "run").write_text("#!/bin/sh\n")
    with pytest.raises(ConfigurationError, match="was changed while you were asked"):
        trust_folder(place, state=str(state), shown=shown)
    assert find_trusted(place, state=str(state)) is None


def test_a_document_is_not_swept_away_by_who_publishes(tmp_path: Path) -> None:
    """Who publishes a packet removes what is unfinished beside it, a document half saved included."""
    resume = make_private(tmp_path / "resume")
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with begun(lambda: save_beside_packets(str(tmp_path), "what was done", at), resume):
        assert os.listdir(resume) == []
    assert (resume / "handoff-20260102T030405Z.md").read_text() == "what was done\n"


def test_a_line_is_added_to_the_file_that_took_the_others_place(tmp_path: Path) -> None:
    """One shell shortens what was typed before, another one adds to it: the line went with the old file."""
    path = str(tmp_path / "typed")
    append_line(path, b"old")
    handle = open_alone(path)
    thread = threading.Thread(target=lambda: append_line(path, b"new", wait_s=60))
    thread.start()
    thread.join(_LOOK_S)
    assert thread.is_alive()
    write_atomic(path, b"kept\n", durable=False)
    os.close(handle)
    thread.join(60)
    assert Path(path).read_bytes() == b"kept\nnew\n"


def test_a_document_without_a_place_is_a_sentence(tmp_path: Path) -> None:
    """The session's folder may be deleted while its agent writes."""
    with pytest.raises(RelayError, match=r"cannot write .*: No such file or directory"):
        save_beside_packets(str(tmp_path / "gone"), "what was done", datetime(2026, 1, 2, tzinfo=UTC))
