"""Changes a folder's files again and again, each time killed or refused before another write to the disk.

`python -m tests.support.doomed_change FOLDER kill|fail` leaves a folder for each number of the write, from 1
to the first that was not reached.
"""

import errno
import itertools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.file_transaction import FileEdit, change_files, describe_file

NOT_REACHED = 7
"""The exit status of a change that was done before its last write's number."""
_WRITES = (
    "os.rename",
    "os.link",
    "os.symlink",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
)
WRITTEN = {
    "changed.txt": "new\n",
    "run.sh": "new\n",
    "added/deep/er.txt": "new\n",
    "folder": "a file now\n",
    "file/in": "new\n",
}
"""By path what is written over `fill`'s folder."""
REMOVED = ("folder/one.txt", "folder/deep/two.txt", "file", "gone/gone.txt")


def fill(root: str) -> None:
    """A folder with a file for every kind of change."""
    for path in ("changed.txt", "run.sh", "untouched.txt", *REMOVED):
        place = os.path.join(root, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(f"old {path}\n")
    Path(root, "run.sh").chmod(0o750)
    Path(root, "folder", "deep").chmod(0o710)
    os.symlink("changed.txt", os.path.join(root, "link"))


def list_changes(root: str, sources: str) -> list[FileEdit]:
    """All changes of it; the new contents stand below `sources`."""
    for path, text in WRITTEN.items():
        name = os.path.join(sources, path.replace("/", "+"))
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    if not os.path.islink(os.path.join(sources, "link")):
        os.symlink("run.sh", os.path.join(sources, "link"))
    written = {path: os.path.join(sources, path.replace("/", "+")) for path in (*WRITTEN, "link")}
    changes = {**written, **dict.fromkeys(REMOVED, "")}
    return [FileEdit(path, source, describe_file(root, path)) for path, source in changes.items()]


def arm(number: int, how: str) -> Callable[[], bool]:
    """Before its Nth write this process is killed, or, once, told that the disk is full; says if it was."""
    seen = 0

    def count(event: str, args: Sequence[object]) -> None:
        nonlocal seen
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if event not in _WRITES and not writes:
            return
        seen += 1
        if seen == number and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if seen == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sys.addaudithook(count)
    return lambda: seen >= number


def try_once(folder: str, nth: int, how: str) -> bool:
    """Whether the change in `folder` got as far as its Nth write; its exit status stands in a file there."""
    root, sources = f"{folder}/root", f"{folder}/new"
    os.makedirs(root)
    os.makedirs(sources)
    fill(root)
    wanted = list_changes(root, sources)
    child = os.fork()
    if not child:
        reached = arm(nth, how)
        try:
            change_files(root, wanted, record=f"{folder}/record.json")
        except RelayError:
            os._exit(1)
        os._exit(0 if reached() else NOT_REACHED)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with open(f"{folder}/status", "w", encoding="ascii") as file:
        file.write(str(code))
    return code != NOT_REACHED


if __name__ == "__main__":
    for number in itertools.count(1):
        if not try_once(f"{sys.argv[1]}/{number}", number, sys.argv[2]):
            break
