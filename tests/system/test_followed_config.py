import os

from agent_relay.system.config import write_order
from agent_relay.system.config_edits import write_model
from agent_relay.system.followed_config import FollowedConfig


def test_a_changed_file_counts_at_once(tmp_path: os.PathLike[str]) -> None:
    """An order given while the daemon runs must not wait for its next start."""
    folder = f"{tmp_path}/config"
    followed = FollowedConfig(folder)
    assert followed.get().order == ()
    write_order(folder, ("understudy", "demo"))
    assert followed.get().order == ("understudy", "demo")
    write_model(folder, "demo", "large")
    assert followed.get().get_agent("demo").model == "large"


def test_a_file_that_cannot_be_meant_changes_nothing(tmp_path: os.PathLike[str]) -> None:
    """A file is saved half-way through an edit; the daemon goes on with what it knew."""
    folder = f"{tmp_path}/config"
    write_order(folder, ("demo",))
    followed = FollowedConfig(folder)
    with open(f"{folder}/config.toml", "w", encoding="utf-8") as stream:
        stream.write("order = [")
    assert followed.get().order == ("demo",)
    os.unlink(f"{folder}/config.toml")
    assert followed.get().order == ()
