import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.size("test")

ROOT = Path(__file__).resolve().parents[2]


def _run(code: str, path: Path) -> list[str]:
    """The log's lines after a process of its own ran `code`: opening the log takes the process's output."""
    begin = "import logging, os, sys\nfrom agent_relay.daemon._log import open_log\nopen_log(sys.argv[1])\n"
    subprocess.run([sys.executable, "-c", begin + code, str(path)], cwd=ROOT, check=False)
    return path.read_text(encoding="utf-8").splitlines()


def test_a_line_is_one_line_with_time_and_level(tmp_path: Path) -> None:
    """Whatever a value holds, it cannot forge a second event."""
    code = "logging.getLogger('agent_relay.x').info('event why=%s', 'a\\n2026 error forged\\x1b[2J\\udcff')\n"
    (line,) = _run(code, tmp_path / "log")
    moment, level, text = line.split(" ", 2)
    assert len(moment) == 20
    assert level == "info"
    assert text == "event why=a?2026 error forged?[2J?"


def test_other_packages_are_heard_without_their_arguments(tmp_path: Path) -> None:
    """They put any value into their messages."""
    (line,) = _run("logging.getLogger('asyncio').error('task %s', 'sk-secret')\n", tmp_path / "log")
    assert line.endswith(" error foreign logger=asyncio")


def test_an_exception_is_named_without_its_message(tmp_path: Path) -> None:
    """The message may quote a prompt."""
    code = "try: 1/0\nexcept ZeroDivisionError: logging.getLogger('agent_relay').exception('broke')\n"
    (line,) = _run(code, tmp_path / "log")
    assert line.endswith(" error broke error=ZeroDivisionError")


def test_standard_output_goes_where_the_log_goes_also_after_rotation(tmp_path: Path) -> None:
    """A native library's last words must not be lost with the old file."""
    code = (
        "for _ in range(12000): logging.getLogger('agent_relay').info('x' * 90)\n"
        "os.write(2, b'last words\\n'); os.write(1, b'and more\\n'); assert os.read(0, 1) == b''\n"
    )
    lines = _run(code, tmp_path / "log")
    assert lines[-2:] == ["last words", "and more"]
    assert sorted(os.listdir(tmp_path)) == ["log", "log.1"]
    assert os.stat(tmp_path / "log.1").st_size <= 1 << 20
    assert logging.getLogger().handlers != []
