"""The programs held by what is measured, run with a bare Python: they cost every wrapper the same."""

import os
import sys
import termios
import time
import tty
import zlib

READY = b"BENCH-READY"
END = b"BENCH-END"
STEP_BYTES = 64 * 1024


def main(what: str, pid_path: str, *rest: str) -> None:
    """Be that program; say by the file at `pid_path` who we are and on the terminal that we are ready."""
    tty.setraw(0, termios.TCSANOW)
    with open(pid_path + ".new", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(pid_path + ".new", pid_path)
    write(READY)
    {"echo": echo, "flood": flood, "sink": sink}[what](*rest)


def echo() -> None:
    """Answer each key by painting it where the last one was."""
    while key := os.read(0, 4096):
        os.write(1, b"\r" + key[-1:])


def flood(path: str, total: str) -> None:
    """On a key write what the file holds until `total` bytes are out, then the end mark (0: no end)."""
    with open(path, "rb") as file:
        text = file.read()
    os.read(0, 1)
    left = int(total)
    while not int(total) or left > 0:
        part = text if not int(total) or left >= len(text) else text[:left]
        write(part)
        left -= len(part)
    write(b"\x1bc\x1b[1;31mlast \x1b[4mline\x1b[0m\r\n" + END + b"\r\n")
    os.read(0, 1)
    time.sleep(3600)


def sink(total: str) -> None:
    """Read that many bytes, then say their checksum."""
    checksum = size = 0
    while size < int(total):
        part = os.read(0, STEP_BYTES)
        size += len(part)
        checksum = zlib.crc32(part, checksum)
    write(b"SUM%08x" % checksum + END)
    time.sleep(3600)


def write(data: bytes) -> None:
    """All of it, in steps a terminal program would take."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view[:STEP_BYTES]) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
