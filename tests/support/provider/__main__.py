"""Starts the provider: `python -m tests.support.provider FOLDER`, prints its port when it listens.

It also brings the loopback interface up, because it is the first process of its network namespace,
and ends when its standard input does, so that no provider outlives its test.
"""

import fcntl
import os
import socket
import struct
import sys
import threading

from tests.support.provider.server import Provider

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1  # linux/sockios.h, linux/if.h


def raise_loopback() -> None:
    """Make 127.0.0.1 reachable; nothing happens where it already is or may not be changed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = fcntl.ioctl(probe, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", asked)[1]
        if not flags & IFF_UP:
            fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def main() -> None:
    """Serve until standard input closes."""
    raise_loopback()
    provider = Provider(sys.argv[1])
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    sys.stdout.write(f"{provider.server_port}\n")
    sys.stdout.flush()
    while os.read(0, 1):
        pass


if __name__ == "__main__":
    main()
