import os
import subprocess
import sys
import warnings
from pathlib import Path

import platformdirs
import pytest

from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.disk.folders import check_private, ensure_private, get_folders


def test_everything_lies_under_agent_relay_home_where_it_is_set() -> None:
    """Tests and containers need one switch that moves all of it."""
    folders = get_folders({"AGENT_RELAY_HOME": "/somewhere/else"})
    assert folders.runtime == "/somewhere/else/run"
    assert folders.state == "/somewhere/else/state"
    assert folders.config == "/somewhere/else/config"
    assert folders.daemon_socket == "/somewhere/else/run/daemon.sock"


@pytest.mark.parametrize(
    "runtime", ["private", "missing", "open", "symlink", "relative", "below-open", "unset"]
)
def test_the_folders_are_those_platformdirs_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    """The hot path computes them itself; were they others, two versions would not find each other."""
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "open").mkdir(mode=0o700)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "symlink").symlink_to(tmp_path / "private")
    shared = tmp_path / "below-open"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "leaf").mkdir(mode=0o700)
    named = {"relative": "run", "unset": "", "below-open": str(shared / "leaf")}.get(
        runtime, str(tmp_path / runtime)
    )
    monkeypatch.setenv("XDG_RUNTIME_DIR", named)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state") if runtime == "private" else "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("AGENT_RELAY_HOME", raising=False)
    folders = get_folders()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", platformdirs.RuntimeDirWarning)
        expected = platformdirs.user_runtime_dir("agent-relay", appauthor=False)
    assert folders.runtime == expected
    assert folders.state == platformdirs.user_state_dir("agent-relay", appauthor=False)
    assert folders.config == platformdirs.user_config_dir("agent-relay", appauthor=False)


def test_a_missing_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    """Prompts and keys pass through what lies in there."""
    path = ensure_private(str(tmp_path / "a" / "b"))
    assert os.stat(path).st_mode & 0o777 == 0o700
    assert ensure_private(path) == path


def test_a_folder_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    """Made by hand, it has whatever mode the umask left."""
    (tmp_path / "readable").mkdir()
    (tmp_path / "readable").chmod(0o755)
    assert os.stat(ensure_private(str(tmp_path / "readable"))).st_mode & 0o777 == 0o700


def test_what_is_no_private_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Whoever can exchange a link or a folder, or write into it, chooses where our sockets are."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o720)
    (tmp_path / "file").write_text("")
    (tmp_path / "common").mkdir()
    (tmp_path / "common").chmod(0o777)
    refusals = {
        "link": "symlink",
        "open": "others may write",
        "file": "not a folder",
        "common/ours": "may replace",
    }
    for name, why in refusals.items():
        with pytest.raises(ConfigurationError, match=why):
            ensure_private(str(tmp_path / name))


def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    """A folder prepared in the shared temporary folder is the classic trap."""
    foreign = "/usr"
    if os.geteuid() == 0:
        foreign = str(tmp_path / "foreign")
        os.mkdir(foreign, 0o700)
        os.chown(foreign, 12345, 12345)
    with pytest.raises(ConfigurationError, match=r"belongs to user \d+, not to you"):
        check_private(foreign)


def test_a_fallback_prepared_by_somebody_else_is_refused(tmp_path: Path) -> None:
    """Its name can be guessed, so anybody can be there first."""
    prepared = tmp_path / f"runtime-{os.geteuid()}"
    prepared.symlink_to(tmp_path)
    with pytest.raises(ConfigurationError, match="not a folder of yours"):
        get_folders({"TMPDIR": str(tmp_path), "HOME": "/root"})


@pytest.mark.size("test")
def test_naming_the_folders_imports_next_to_nothing() -> None:
    """Every hot command does it."""
    code = (
        "import sys; from agent_relay.system.disk.folders import get_folders; get_folders();"
        "print([m for m in ('platformdirs','dataclasses','pathlib','tempfile','typing') if m in sys.modules])"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
