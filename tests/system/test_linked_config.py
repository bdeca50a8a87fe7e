"""A `config.toml` kept elsewhere and linked stays where its keeper has it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.config_file import write_config, write_model, write_order

EDITS = pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda folder: write_order(folder, ("demo",)), 'order = ["demo"]\n# mine\n'),
        (lambda folder: write_model(folder, "demo", "large"), '# mine\n\n[agents.demo]\nmodel = "large"\n'),
    ],
    ids=("order", "model"),
)
Edit = Callable[[str], None]


def _link(tmp_path: Path, target: str | Path) -> str:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").symlink_to(target)
    return str(folder)


@EDITS
def test_an_edit_goes_through_the_links_to_the_file(tmp_path: Path, edit: Edit, line: str) -> None:
    """Replaced by a file, the link's target and every other machine would go on without the change."""
    kept = tmp_path / "dotfiles" / "relay.toml"
    kept.parent.mkdir()
    kept.write_text("# mine\n")
    kept.chmod(0o640)
    (tmp_path / "between").symlink_to("dotfiles/relay.toml")
    folder = _link(tmp_path, "../between")
    edit(folder)
    assert kept.read_text() == line
    assert os.readlink(f"{folder}/config.toml") == "../between"
    assert kept.stat().st_mode & 0o777 == 0o640
    assert os.listdir(kept.parent) == ["relay.toml"]


@EDITS
@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nowhere/relay.toml", "cannot edit .*/config.toml: the link leads nowhere .*No such file.*"),
        ("config.toml", "cannot read .*/config.toml"),
        ("/dev/null", "cannot edit .*/config.toml: it is a link to /dev/null, which is not a file"),
    ],
    ids=("dangling", "loop", "device"),
)
def test_a_link_that_leads_to_no_file_is_told_of_and_left_alone(
    tmp_path: Path, edit: Edit, line: str, target: str, why: str
) -> None:
    """Its keeper's disk may not be there for a moment: what it links is not ours to unlink."""
    del line
    folder = _link(tmp_path, target)
    with pytest.raises(ConfigurationError, match=why):
        edit(folder)
    assert os.readlink(f"{folder}/config.toml") == target


@EDITS
def test_a_file_keeps_its_mode(tmp_path: Path, edit: Edit, line: str) -> None:
    """Whoever lets their group read it had to allow that again after every edit."""
    (tmp_path / "config").mkdir(mode=0o700)
    config = tmp_path / "config" / "config.toml"
    config.write_text("# mine\n")
    config.chmod(0o640)
    edit(str(config.parent))
    assert (config.read_text(), config.stat().st_mode & 0o777) == (line, 0o640)


@pytest.mark.parametrize("now", ["# mine, saved just now\n", None], ids=("saved", "removed"))
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_that_was_saved_since_it_was_read_is_not_replaced(
    tmp_path: Path, now: str | None, kind: str
) -> None:
    """An editor takes none of our locks, so what it saves in between would be gone."""
    kept = tmp_path / "kept.toml"
    config = kept
    if kind == "link":
        config = tmp_path / "config.toml"
        config.symlink_to(kept)
    if now is not None:
        kept.write_text(now)
    with pytest.raises(ConfigurationError, match="cannot edit"):
        write_config(str(config), 'order = ["demo"]\n', before="# mine\n")
    assert (kept.read_text() if kept.exists() else None) == now
