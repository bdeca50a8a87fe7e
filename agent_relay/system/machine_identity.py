"""The owner that this process acts for, as the kernel identifies it: host, machine, boot, pid namespace."""

import hashlib
import os
import time
from datetime import UTC, datetime, timedelta

from agent_relay.domain.values.ids import Owner

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_PURPOSE = b"agent-relay owner of a working tree\n"
"""machine-id(5) asks not to expose the id itself: a digest for this purpose is used instead."""


def read_owner(runtime: str) -> Owner:
    """Return the owner that works with the runtime folder `runtime`, in this process's namespaces."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return Owner(
        host=os.uname().nodename,
        machine=_digest_machine(),
        boot=_read(_BOOT_ID),
        pid_namespace=namespace,
        runtime=os.path.realpath(runtime),
    )


def read_boot_moment() -> datetime:
    """Return when this machine booted, aware, in UTC; time spent asleep counts."""
    return datetime.now(UTC) - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))


def _digest_machine() -> str:
    for path in _MACHINE_IDS:
        if found := _read(path):
            return hashlib.sha256(_PURPOSE + found.encode()).hexdigest()[:16]
    return ""


def _read(path: str) -> str:
    """Return the one line of a system file; empty if there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(256).strip()
    except OSError:
        return ""
