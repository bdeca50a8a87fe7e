"""Has the daemon name its sessions in the user's index again, for whoever misses one there."""

import os

from agent_relay.client.connection import Connection, NobodyListensError
from agent_relay.domain.errors import RelayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.system.folders import Folders


def renew_index(folders: "Folders") -> bool:
    """Return whether the index names every session at work by now; false where nobody could be asked.

    The state folder may have been removed while sessions live. A daemon is started only where legs are left
    that it could take up.
    """
    try:
        with _connect(folders) as connection:
            connection.request("session.list")
    except RelayError:
        return False
    return True


def _connect(folders: "Folders") -> Connection:
    try:
        return Connection.open(folders)
    except NobodyListensError:
        if not _has_legs(folders):
            raise
    from agent_relay.client.autostart import connect_or_start

    return connect_or_start(folders)


def _has_legs(folders: "Folders") -> bool:
    try:
        return bool(os.listdir(folders.legs))
    except OSError:
        return False
