"""What stands in place of a conversation's file and is none."""

import os
from pathlib import Path

import pytest

from tests.faces.cli.test_recall import claude_leg, lay_session, write_claude
from tests.faces.cli_run import create_world

pytestmark = pytest.mark.size("test")


def test_a_link_in_place_of_the_record_is_not_followed(tmp_path: Path) -> None:
    """It may lead to another customer's conversation; the journal is searched then."""
    world = create_world(str(tmp_path))
    ours = claude_leg(world, 1, ("Paint the shed", "painted"))
    lay_session(world, ours)
    os.unlink(ours.transcript)
    theirs = write_claude(Path(world.home) / "elsewhere.jsonl", ours.native_id, ("Acme pays late", "noted"))
    os.symlink(theirs, ours.transcript)
    assert world.run("recall", "acme", "pays").status == 1
    assert "Paint the shed" in world.run("recall", "paint", "shed").out
