"""Stand in for a Python that starts the daemon: `python -I -S preload_ask.py SOCKET -I DAEMON WORDS…`.

What has loaded the product forks the daemon with this process's streams, environment, folder and namespaces.
"""

import array
import json
import os
import socket
import sys

_, path, _isolated, program, *words = sys.argv
order = {"program": program, "words": words, "env": {**os.environ}, "cwd": os.getcwd(), "leads": False}
order["namespaces"] = [f"/proc/{os.getpid()}/ns/{kind}" for kind in ("user", "net")]
reads, writes = os.pipe()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(path)
    rights = array.array("i", [0, 1, 2, writes])
    server.sendmsg([json.dumps(order).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    os.close(writes)
    server.recv(64)
# The daemon's starter waits for the end of the process that was forked, whose own child the daemon is.
sys.exit(int(os.read(reads, 64) or 1))
