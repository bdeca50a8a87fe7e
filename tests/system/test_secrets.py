"""The user's own secrets are gathered from the environment and from `.env` files, within bounds."""

import os
from pathlib import Path

from agent_relay.system.config_file import gather_secrets


def test_environment_and_dotenv_files_are_gathered(tmp_path: Path) -> None:
    """All the names people give such files; samples are committed and hold nothing."""
    (tmp_path / "app").mkdir()
    (tmp_path / ".env").write_text("API_TOKEN=first-value-1\n")
    (tmp_path / ".env.local").write_text("API_TOKEN=second-value-2\n")
    (tmp_path / "prod.env").write_text("API_TOKEN=third-value-3\n")
    (tmp_path / ".env.example").write_text("API_TOKEN=sample-value-4\n")
    (tmp_path / "app" / ".env").write_text("API_TOKEN=fifth-value-5\n")
    environ = {"DB_PASSWORD": "sixth-value-6", "HOME": "/home/somebody"}
    assert gather_secrets("", environ) == gather_secrets(str(tmp_path / "missing"), environ)
    assert gather_secrets(str(tmp_path), environ, cwd=str(tmp_path / "app")) == {
        "first-value-1",
        "second-value-2",
        "third-value-3",
        "fifth-value-5",
        "sixth-value-6",
    }


def test_what_is_no_ordinary_file_is_passed_over(tmp_path: Path) -> None:
    """A pipe would block us, a huge file would fill the memory, bytes are no text."""
    os.mkfifo(tmp_path / ".env")
    (tmp_path / ".env.d").mkdir()
    (tmp_path / ".env.loop").symlink_to(".env.loop")
    (tmp_path / ".env.big").write_text("API_TOKEN=big-value-1\n" + "#" * (300 << 10))
    (tmp_path / ".env.latin").write_bytes(b"NAME=caf\xe9\nAPI_TOKEN=latin-value-1\n")
    assert gather_secrets(str(tmp_path), {}) == {"latin-value-1"}
