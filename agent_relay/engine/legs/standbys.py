"""Say which agents may be started ahead of a limit now, and with which configuration they would be."""

import hashlib
from collections.abc import Mapping

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.values import AgentName, replace
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.terminal.holder_client import HolderError

MOST = 2
"""Most sessions of one user with a standby at once: each takes the memory of an agent at work."""


class StandbySetups:
    """Rules for one session's standby; `live` are the monitors of the session's living legs."""

    def __init__(self, services: Services, live: Mapping[str, LegMonitor]) -> None:
        self._services = services
        self._live = live
        self._adapters: dict[str, bytes] = {}

    def list_setups(self, session: Session, launch: LaunchEnvironment) -> dict[str, str]:
        """Return, by agent, what identifies the configuration it would be started with; empty for nobody.

        Only agents are meant that are given their packet once they are ready. With another environment than
        the standby's a successor is started anew.
        """
        ahead = session.standby
        if not self._services.config.handoff.standby:
            return {}
        if ahead is None and len(self._services.standbys) >= MOST:
            return {}
        live = self._live.get(ahead.leg.id) if ahead is not None else None
        if live is not None and _describe(live.launch_environment) != _describe(launch):
            return {}
        adapters = self._services.adapters
        return {
            name: self._identify(name, launch)
            for name in session.roster
            if AgentName(name) in adapters and adapters[AgentName(name)].adapter.deliver.packet_by == "paste"
        }

    def see(self, session: Session) -> None:
        """Count the session's standby among its user's."""
        if session.standby is None:
            self._services.standbys.pop(session.id, None)
        else:
            self._services.standbys[session.id] = session.standby.leg.id

    async def prepare(self, session: Session, launch: LaunchEnvironment) -> LaunchEnvironment:
        """Return the launch environment of the standby, with the size of the screen that the user sees now.

        Raises RelayError if sessions with earlier standbys are as many as there may be.
        """
        if session.id not in [*self._services.standbys][:MOST]:
            raise RelayError(f"{MOST} other sessions have an agent ready already")
        leg = session.living_leg
        live = self._live.get(leg.id) if leg is not None else None
        if live is None:
            return launch
        try:
            status = await live.holder.request("status")
        except HolderError:
            return launch
        rows, cols = status.get("rows"), status.get("cols")
        if not isinstance(rows, int) or not isinstance(cols, int):
            return launch
        return replace(launch, rows=rows, cols=cols)

    def _identify(self, name: str, launch: LaunchEnvironment) -> str:
        config = self._services.config
        if name not in self._adapters:
            adapter = self._services.get_adapter(name).adapter
            self._adapters[name] = msgspec.json.encode(adapter)
        words = (
            config.get_agent(name),
            (launch.args, launch.model) if launch.agent == name else (),
            config.agent_tools,
            config.proxy,
            config.may_ever_continue,
        )
        return hashlib.sha256(self._adapters[name] + msgspec.json.encode(words)).hexdigest()[:16]


def _describe(launch: LaunchEnvironment) -> tuple[object, ...]:
    return (launch.environ, launch.agent, launch.args, launch.model)
