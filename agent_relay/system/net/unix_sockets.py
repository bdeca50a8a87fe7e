"""Unix sockets that only their owner can reach, at paths of any length.

Hot commands import this module: it uses the C socket type, and only `listen` imports `socket`.
"""

import _socket
import os
import stat
import struct

from agent_relay.domain.errors import DaemonUnreachableError
from agent_relay.system.disk.folders import check_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

# sun_path has 108 bytes with its closing zero (unix(7)).
_PATH_LIMIT_BYTES = 107
_BACKLOG = 512
_CREDENTIALS = struct.Struct("3i")
_TIMEVAL = struct.Struct("@ll")


def listen(path: str) -> "socket.socket":
    """Return a stream socket that listens at `path`, mode 0600, non-blocking; its folder is ours and private.

    What was there is replaced in one step, so that no client meets a socket that does not listen yet: call
    this only while holding the lock that makes you the one owner of `path`. Raise ConfigurationError if the
    folder is not private, OSError if the socket cannot be made.
    """
    import socket

    folder, name = os.path.split(path)
    check_private(folder)
    fresh = f".{name}-{os.getpid()}"
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        _remove(fresh, directory)
        sock.bind(f"/proc/self/fd/{directory}/{fresh}")
        os.chmod(fresh, 0o600, dir_fd=directory)
        sock.listen(_BACKLOG)
        os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        sock.close()
        _remove(fresh, directory)
        raise
    finally:
        os.close(directory)
    return sock


def connect(path: str, *, timeout_s: float) -> _socket.socket:
    """Return a stream connected to `path`, with `timeout_s` on this and every later call.

    The folder must be private and the listener's process ours. Raise FileNotFoundError or
    ConnectionRefusedError if there is no listener, TimeoutError if the listener takes no more connections,
    ConfigurationError for a folder that is not private, DaemonUnreachableError if another user's process
    listens.
    """
    folder, name = os.path.split(path)
    check_private(folder)
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    is_connected = False
    try:
        # A non-blocking connect fails at once on a full backlog; a blocking one waits this long for room.
        seconds, rest = divmod(timeout_s, 1)
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _TIMEVAL.pack(int(seconds), int(rest * 1e6)))
        if len(os.fsencode(path)) <= _PATH_LIMIT_BYTES:
            sock.connect(path)
        else:
            directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                sock.connect(f"/proc/self/fd/{directory}/{name}")
            finally:
                os.close(directory)
        _check_listener(sock, path)
        sock.settimeout(timeout_s)
        is_connected = True
    except BlockingIOError:
        raise TimeoutError(f"{path} takes no more connections") from None
    finally:
        if not is_connected:
            sock.close()
    return sock


def _check_listener(sock: _socket.socket, path: str) -> None:
    _, uid = peer_of(sock)
    if uid != os.geteuid():
        raise DaemonUnreachableError(f"user {uid} listens at {path}, not you")


def peer_of(sock: "_socket.socket") -> tuple[int, int]:
    """Return the (pid, uid) of the process at the other end, from the kernel. Raise OSError.

    For a client this is the process that began to listen.
    """
    data = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    return pid, uid


def _remove(name: str, directory: int) -> None:
    try:
        found = os.lstat(name, dir_fd=directory)
        if stat.S_ISSOCK(found.st_mode):
            os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return
