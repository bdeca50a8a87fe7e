"""A port on this machine for one user alone: kept, named in a file, and told from others' connections.

Several sockets of one user may be bound to a port if all of them ask for that; another user's may not. So a
process that holds a bound socket, without listening, keeps the port from others while nobody listens at it.
Whose a connection is, the kernel's table tells, which no user can change.
"""

import contextlib
import os
import socket
import sys

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import open_stream, read_bounded, write_all
from agent_relay.system.disk.locks import take_lock

READY = "ready"
_LOOPBACK = "127.0.0.1"
_LIMIT_BYTES = 100
_LOOK_S = 1.0
_MOST_PIDS, _MOST_PORTS = 1 << 31, 1 << 16
# A program may reach an IPv4 address by a socket of IPv6, too.
_TABLES = (("/proc/net/tcp", False), ("/proc/net/tcp6", True))
_MAPPED = bytes(10) + b"\xff\xff"
_LOCAL, _REMOTE, _UID = 1, 2, 7
_WORD_BYTES = 4


def open_reserved(port: int) -> socket.socket:
    """Return a socket bound to `port` of 127.0.0.1, to any free one for 0. Raise OSError if it is taken."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((_LOOPBACK, port))
    except OSError:
        bound.close()
        raise
    return bound


def write_running(path: str, port: int) -> int | None:
    """Lock the file at `path` and name this process and `port` in it; return the lock's descriptor.

    `None` if another process has it locked. Raise RelayError, OSError.
    """
    # Whoever looks whether one is running holds it for a moment.
    handle = take_lock(path, limit_s=_LOOK_S)
    if handle is not None:
        os.ftruncate(handle, 0)
        write_all(handle, f"{os.getpid()} {port}\n".encode())
    return handle


def read_running(path: str) -> tuple[int, int]:
    """Return the process id and port last named in the file at `path`; zeros if there are none."""
    with contextlib.suppress(OSError, RelayError, UntrustedDataError, ValueError):
        pid, port = read_bounded(path, limit_bytes=_LIMIT_BYTES).split()
        found = int(pid), int(port)
        return found if 0 < found[0] < _MOST_PIDS and 0 < found[1] < _MOST_PORTS else (0, 0)
    return 0, 0


def find_owner(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Return the user id of the process at `peer` that is connected to `own`, both on IPv4.

    `None` if the kernel lists no such connection. Reads files.
    """
    for path, is_mapped in _TABLES:
        wanted = _render(peer, is_mapped=is_mapped).encode(), _render(own, is_mapped=is_mapped).encode()
        try:
            with open_stream(path) as table:
                for line in table:
                    # Nearly every line is somebody else's.
                    if wanted[0] in line:
                        words = line.split()
                        if (words[_LOCAL], words[_REMOTE]) == wanted:
                            return int(words[_UID])
        except (OSError, UntrustedDataError, IndexError, ValueError):
            continue
    return None


def _render(place: tuple[str, int], *, is_mapped: bool) -> str:
    """Render an IPv4 address and port as the kernel's table does: words in the machine's order, in hex."""
    packed = (_MAPPED if is_mapped else b"") + socket.inet_aton(place[0])
    words = [packed[at : at + _WORD_BYTES] for at in range(0, len(packed), _WORD_BYTES)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{place[1]:04X}"
