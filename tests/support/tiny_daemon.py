"""The real daemon around a tiny application, for tests: `python tiny_daemon.py [--detached]`."""

import asyncio
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from collections.abc import Mapping

from agent_relay.daemon.__main__ import main
from agent_relay.domain.errors import NobodyAvailableError
from agent_relay.domain.protocol.operations import Handler, NoticeSender, Peer
from agent_relay.system.clock import Clock
from agent_relay.system.disk.folders import Folders
from agent_relay.system.disk.locks import append_line

SECRET = "sk-planted-secret"


class TinyApp:
    """Echoes, refuses, breaks and tells, as the tests ask."""

    def __init__(self, folders: Folders, notices: NoticeSender) -> None:
        self._folders = folders
        self._notices = notices

    async def start(self) -> None:
        """Starts, or fails in the way AGENT_RELAY_TINY names; leaves a mark that it started."""
        way = os.environ.get("AGENT_RELAY_TINY", "")
        if way == "refuses":
            raise NobodyAvailableError("the tiny app refuses to start", hint="Ask it nicely.")
        if way == "breaks":
            raise KeyError(SECRET)
        append_line(f"{self._folders.state}/started", b"%d" % os.getpid())

    async def stop(self) -> None:
        """Leaves a mark that it stopped."""
        append_line(f"{self._folders.state}/stopped", b"%d" % os.getpid())
        if os.environ.get("AGENT_RELAY_TINY") == "hangs":
            asyncio.get_running_loop().run_in_executor(None, signal.pause)

    def handlers(self) -> Mapping[str, Handler]:
        """What the tests ask for."""
        return {"echo": self._echo, "refuse": self._refuse, "break": self._break, "tell": self._tell}

    async def _echo(self, sent: Mapping[str, object], peer: Peer) -> Mapping[str, object]:
        return {"fields": dict(sent), "client": peer.client, "peer": peer.pid}

    async def _refuse(self, _sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        raise NobodyAvailableError("everybody rests", hint="Wait until 21:00.")

    async def _break(self, sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        raise KeyError(sent["secret"])

    async def _tell(self, sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
        sessions = sent["sessions"]
        assert isinstance(sessions, list)
        for session in sessions:
            self._notices.tell(session)
        return {}


def open_app(folders: Folders, _clock: Clock, notices: NoticeSender) -> TinyApp:
    """The application of this daemon."""
    return TinyApp(folders, notices)


if __name__ == "__main__":
    sys.exit(main(open_app=open_app, leave_limit_s=5.0))
