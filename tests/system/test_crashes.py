import json
import os
from datetime import UTC, datetime
from pathlib import Path

from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.wire import parse_line
from agent_relay.system.crash_reports import render_crash, write_crash

AT = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SECRET = "sk-planted-secret"


def _caught() -> BaseException:
    try:
        try:
            json.loads("{" + SECRET)
        except ValueError:
            parse_line(SECRET.encode())
    except RelayError as error:
        error.add_note(SECRET)
        return error
    raise AssertionError


def test_a_report_says_where_and_never_what() -> None:
    """It is pasted into public issues."""
    text = render_crash(_caught(), at=AT, version="0.1.0", doing="testing")
    assert text.startswith("agent-relay 0.1.0\npython 3.")
    assert "at 2026-11-20T18:20:00+00:00\ndoing testing\n" in text
    assert "UntrustedDataError\n  (1 lines of other code)\n  agent_relay/domain/protocol/wire.py:" in text
    assert " in parse_line\n" in text
    assert SECRET not in text
    assert os.path.dirname(os.path.abspath(__file__)) not in text


def test_a_chain_of_causes_is_shown() -> None:
    """The first error is usually the one that matters."""
    error = RuntimeError("last")
    error.__cause__ = KeyError("first")
    assert "RuntimeError\ncaused by\nKeyError\n" in render_crash(error, at=AT, version="0", doing="x")


def test_a_circle_of_causes_ends() -> None:
    """Libraries do build them."""
    error = RuntimeError("x")
    error.__cause__ = RuntimeError("y")
    error.__cause__.__cause__ = error
    assert render_crash(error, at=AT, version="0", doing="x").count("RuntimeError") == 8


def test_reports_are_private_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    """A crash loop must not fill the disk."""
    folder = str(tmp_path / "crashes")
    paths = [
        write_crash(folder, KeyError("x"), at=AT.replace(minute=minute), version="0", doing="x")
        for minute in range(25)
    ]
    assert sorted(os.listdir(folder)) == [os.path.basename(path) for path in paths[5:]]
    assert os.stat(paths[-1]).st_mode & 0o777 == 0o600


def test_a_report_that_cannot_be_written_is_no_second_crash(tmp_path: Path) -> None:
    """The disk may be what broke in the first place."""
    (tmp_path / "file").write_text("")
    assert write_crash(str(tmp_path / "file"), KeyError("x"), at=AT, version="0", doing="x") == ""
