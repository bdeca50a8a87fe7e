"""Whether something can be written is asked of the file system, and nothing of the question is left."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.store.project import check_project, open_project
from agent_relay.system.disk.removal import check_usable, find_full, try_writing
from tests.e2e.test_hostile_disk import may_mount, own_disk

NOBODY = 65534


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Whoever runs the tests is not root meanwhile, who may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_can_be_written_to_stays_as_it_is(tmp_path: Path) -> None:
    """Whoever looks must not be seen, by a build tool that compares times either."""
    before = os.stat(tmp_path)
    try_writing(str(tmp_path))
    after = os.stat(tmp_path)
    assert os.listdir(tmp_path) == []
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)


def test_what_is_no_folder_cannot_be_written_to(tmp_path: Path) -> None:
    """A name says nothing of what stands there."""
    (tmp_path / "file").touch()
    found = {}
    for name in ("missing", "file", "file/below"):
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            try_writing(f"{tmp_path}/{name}")
        found[name] = caught.value.errno
    assert found == {"missing": errno.ENOENT, "file": errno.ENOTDIR, "file/below": errno.ENOTDIR}


def test_a_folder_one_may_not_write_to_is_told(tmp_path: Path) -> None:
    """A tree of somebody else, or a home that was copied by root."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chmod(place, 0o755)  # noqa: S103 - same
        os.mkdir(f"{place}/closed", 0o555)
        os.mkdir(f"{place}/mine", 0o700)
        if os.geteuid() == 0:
            os.chown(f"{place}/closed", NOBODY, NOBODY)
            os.chown(f"{place}/mine", NOBODY, NOBODY)
        with ordinary_user():
            try_writing(f"{place}/mine")
            with pytest.raises(RelayError, match=r"cannot write .*/closed/\.agent-relay: Permission denied"):
                check_project(f"{place}/closed")
            with pytest.raises(ConfigurationError, match=r"cannot make the folder .*: Permission denied"):
                check_usable(f"{place}/closed/state")
    assert os.listdir(tmp_path) == []


@pytest.mark.size("test")
def test_a_full_disk_is_told_although_a_file_can_be_made_on_it(tmp_path: Path) -> None:
    """A name takes no room, a journal does."""
    if not may_mount():
        pytest.skip(reason="this user may not mount a file system")
    disk = f"{tmp_path}/disk"
    with own_disk(disk) as toggle:
        try_writing(disk)
        assert find_full((str(tmp_path), f"{disk}/legs", "/proc", "/nowhere/at/all")) == ""
        toggle()
        with open(f"{disk}/name", "wb"):
            pass
        with pytest.raises(OSError, match="No space left on device"):
            try_writing(disk)
        why = f"cannot write into {disk}/legs: No space left on device"
        assert find_full((str(tmp_path), f"{disk}/legs")) == why
        assert sorted(os.listdir(disk)) == ["filler", "name"]


def test_the_folders_of_a_user_are_judged_as_a_start_would(tmp_path: Path) -> None:
    """What is there, what can be made, and what nobody would make where others could exchange it."""
    (tmp_path / "there").mkdir(mode=0o700)
    assert check_usable(f"{tmp_path}/there")
    assert not check_usable(f"{tmp_path}/not/yet/there")
    assert os.listdir(tmp_path) == ["there"]
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o777)  # noqa: S103 - the point
    with pytest.raises(ConfigurationError, match="anybody may replace what is in"):
        check_usable(f"{tmp_path}/open/state")


def test_a_project_is_judged_as_a_start_would(tmp_path: Path) -> None:
    """A folder that came with a clone is looked at as deep as a session would write."""
    assert not check_project(str(tmp_path))
    assert os.listdir(tmp_path) == []
    folder = open_project(str(tmp_path))
    assert check_project(str(tmp_path))
    os.symlink("/nowhere", f"{folder}/sessions")
    with pytest.raises(RelayError, match="sessions is a symlink, so relay will not write through it"):
        check_project(str(tmp_path))
