"""A desktop is told by its own program, which gets nothing but what it shows and how to reach it."""

import json
import os
import sys
from pathlib import Path

import pytest

from agent_relay.system.net.webhook import find_desktop, show_on_desktop

RECORDS = """#!{python} -IS
import json, os, sys
with open({path!r}, "w") as file:
    json.dump([sys.argv[1:], sorted(os.environ), os.getcwd()], file)
sys.exit({status})
"""


def write_program(folder: Path, *, status: int = 0) -> Path:
    """A `notify-send` that writes down how it was called; where that stands."""
    heard = folder / "heard.json"
    program = folder / "notify-send"
    program.write_text(RECORDS.format(python=sys.executable, path=str(heard), status=status))
    program.chmod(0o755)
    return heard


def test_it_is_given_the_words_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of somebody else's is no place for the user's whole environment; nor is the user's folder."""
    monkeypatch.chdir("/")  # where the daemon is
    heard = write_program(tmp_path)
    environ = {
        "PATH": f"relative:{tmp_path}",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
        "DISPLAY": ":0",
        "SOME_API_KEY": "sk-1",
    }
    assert show_on_desktop(environ, "--icon=x", "a < b & c") == ""
    words, names, folder = json.loads(heard.read_text())
    assert words == ["--app-name=agent-relay", "--", "--icon=x", "a &lt; b &amp; c"]
    assert set(names) - {"LC_CTYPE"} == {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "PATH"}
    assert folder == "/"


def test_without_a_session_bus_or_the_program_nobody_is_told_and_nothing_fails(tmp_path: Path) -> None:
    """Servers have neither; asking there would cost a process and a line in the log each time."""
    write_program(tmp_path)
    assert find_desktop({"PATH": str(tmp_path)}) == ""
    assert find_desktop({"PATH": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "gone")}) == ""
    assert show_on_desktop({"PATH": "/nowhere", "DBUS_SESSION_BUS_ADDRESS": "x"}, "a", "b") == ""
    (tmp_path / "bus").touch()
    found = find_desktop({"PATH": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert found == str(tmp_path / "notify-send")


def test_a_program_of_the_folder_one_is_in_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository could bring one along."""
    write_program(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_desktop({"PATH": f".:{os.pathsep}bin", "DBUS_SESSION_BUS_ADDRESS": "x"}) == ""


def test_why_it_failed_is_told(tmp_path: Path) -> None:
    """One line in the log, with what is to be looked at."""
    environ = {"PATH": str(tmp_path), "DBUS_SESSION_BUS_ADDRESS": "x"}
    write_program(tmp_path, status=1)
    assert show_on_desktop(environ, "a", "b") == "status-1"
    (tmp_path / "notify-send").write_text("#!/nowhere/at/all\n")
    assert show_on_desktop(environ, "a", "b") == "FileNotFoundError"


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    """A desktop that does not answer must not keep what comes after it."""
    (tmp_path / "notify-send").write_text(f"#!{sys.executable} -IS\nimport time\ntime.sleep(600)\n")
    (tmp_path / "notify-send").chmod(0o755)
    environ = {"PATH": str(tmp_path), "DBUS_SESSION_BUS_ADDRESS": "x"}
    assert show_on_desktop(environ, "a", "b", limit_s=0.2) == "late"
