"""Report when something in a folder is deleted or the folder moved, by inotify, without polling.

The holder uses it too, so it needs the standard library alone; the numbers are those of inotify(7).
"""

import os

_MOVED_FROM, _DELETE, _DELETE_SELF, _MOVE_SELF, _ONLY_DIRECTORIES = 0x40, 0x200, 0x400, 0x800, 0x01000000
_ITSELF = _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORIES
_CONTENTS = _ITSELF | _MOVED_FROM | _DELETE
_READ_BYTES = 1 << 16


def identify(path: str) -> "tuple[int, int] | None":
    """Return device and inode of the file of this name, `None` for none: another may have replaced ours."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def identify_open(fd: int) -> "tuple[int, int]":
    """Return device and inode of the open file, whatever became of its name."""
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


class FolderAlarm:
    """`fd` is readable once something was deleted in or moved out of `folder`, or the folder itself moved.

    It is -1 if the kernel has no more inotify instances for this user: then poll from time to time.
    """

    __slots__ = ("fd",)

    def __init__(self, folder: str) -> None:
        # A holder has loaded it for its child, and who never has to wait does not pay for it.
        import ctypes

        library = ctypes.CDLL(None)
        self.fd: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask, path = _CONTENTS, folder
        while self.fd >= 0:
            if library.inotify_add_watch(self.fd, os.fsencode(path), mask) < 0:
                self.close()
            above = os.path.dirname(path)
            if above == path:
                break
            mask, path = _ITSELF, above

    def take(self) -> None:
        """Discard the events so far."""
        try:
            while os.read(self.fd, _READ_BYTES):
                continue
        except OSError:
            return

    def close(self) -> None:
        """Stop watching; harmless when repeated."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
