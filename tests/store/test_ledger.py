import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import filelock
import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.limits import Rest
from agent_relay.domain.values import replace
from agent_relay.store.ledger import read_ledger, update_ledger

SEEN = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SESSION = Rest(
    "alpha", "", "account", datetime(2026, 11, 20, 21, tzinfo=timezone(timedelta(hours=1))), "hit", SEEN
)
BILLING = Rest("beta", "big", "billing", None, "out of \u20ac\udcff", SEEN)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where no ledger is yet."""
    return str(tmp_path / "state" / "ledger.json")


def test_what_was_noted_is_read_again(path: str) -> None:
    """Across sessions, repositories and restarts."""
    assert read_ledger(path) == ()
    assert update_ledger(path, lambda before: (*before, SESSION)) == (SESSION,)
    assert update_ledger(path, lambda before: (*before, BILLING)) == (SESSION, BILLING)
    assert read_ledger(path) == (SESSION, BILLING)
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_where_nothing_changed(path: str) -> None:
    """A look must not cost a flush of the disk."""
    update_ledger(path, lambda before: (*before, SESSION))
    before = Path(path).stat().st_ino
    update_ledger(path, lambda rests: rests)
    assert Path(path).stat().st_ino == before


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"rests": 3}',
        b'{"rests": [7]}',
        b'{"rests": [{"agent": "alpha"}]}',
        b'{"rests": [{"agent":"a","model":"","scope":"account","until":"soon","evidence":"","seen_at":"x"}]}',
        b'{"rests": [{"agent":"a","model":"","scope":"s","evidence":"","seen_at":"2026-01-01T00:00:00"}]}',
        b"\0" * 100,
        b" " * (2 << 20),
    ],
)
def test_a_damaged_ledger_is_moved_aside_with_one_warning(
    path: str, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A lost ledger costs one more refused question; a refused start costs the day."""
    update_ledger(path, lambda before: (*before, SESSION))
    Path(path).write_bytes(damage)
    assert read_ledger(path) == ()
    assert read_ledger(path) == ()
    assert [record.getMessage().split()[0] for record in caplog.records] == ["ledger-damaged"]
    assert Path(f"{path}.damaged").read_bytes() == damage
    assert update_ledger(path, lambda before: (*before, BILLING)) == (BILLING,)


@pytest.mark.size("test")
def test_two_writers_lose_nothing(path: str) -> None:
    """Sessions of several daemons' lives and commands note limits at once."""
    code = (
        "import sys\n"
        "from datetime import datetime, UTC\n"
        "from agent_relay.domain.limits import Rest\n"
        "from agent_relay.store.ledger import update_ledger\n"
        "for n in range(20):\n"
        "    rest = Rest(sys.argv[2] + str(n), '', 'account', None, '', datetime.now(UTC))\n"
        "    update_ledger(sys.argv[1], lambda rests: (*rests, rest))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    writers = [
        subprocess.Popen([sys.executable, "-c", code, path, name], cwd=root) for name in ("a", "b", "c")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert {rest.agent for rest in read_ledger(path)} == {f"{name}{n}" for name in "abc" for n in range(20)}


def test_a_change_that_fails_changes_nothing(path: str) -> None:
    """Neither the file nor the lock stays behind half done."""
    update_ledger(path, lambda before: (*before, SESSION))

    def fail(_rests: Sequence[Rest]) -> Sequence[Rest]:
        raise RelayError("no")

    with pytest.raises(RelayError, match="no"):
        update_ledger(path, fail)
    assert (
        update_ledger(path, lambda rests: [replace(rest, agent="gamma") for rest in rests])[0].agent
        == "gamma"
    )
    with filelock.FileLock(f"{path}.lock", timeout=0):
        assert read_ledger(path)[0].agent == "gamma"
