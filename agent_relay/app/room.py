"""One session at work: its host, and the stage its effects are performed on."""

from collections.abc import Callable
from dataclasses import dataclass

from agent_relay.app.ground import Ground
from agent_relay.app.host import Host
from agent_relay.app.keeping import KeptJournal
from agent_relay.app.narrating import Narrating
from agent_relay.app.stage import Stage
from agent_relay.domain.session import Session
from agent_relay.system.journal import Journal


@dataclass(frozen=True, slots=True)
class Room:
    """A session's host and stage."""

    host: Host
    stage: Stage

    @property
    def session(self) -> Session:
        """The session now."""
        return self.host.session

    @property
    def trouble(self) -> str:
        """What keeps the session from going on, for the user; empty for nothing."""
        return self.host.trouble or self.stage.trouble

    async def close(self) -> None:
        """Nothing of it runs in this process any more; its agent and holder are left as they are."""
        await self.stage.close()
        await self.host.close()


def open_room(
    ground: Ground, narrating: Narrating, journal: Journal, changed: Callable[[Session], None]
) -> Room:
    """The session of `journal`, at work. Raises what its history makes of it, the journal given up then."""
    stage = Stage(ground, narrating)

    def see(session: Session) -> None:
        stage.see(session)
        changed(session)

    try:
        host = Host(
            KeptJournal(journal),
            ground.clock,
            build_world=stage.build_world,
            perform=stage.perform,
            redact=stage.redact,
            changed=see,
            report=ground.report,
        )
    except BaseException:
        journal.close()
        raise
    stage.host = host
    host.start()
    return Room(host, stage)
