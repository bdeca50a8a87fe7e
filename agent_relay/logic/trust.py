"""Nobody is stopped for a packet that cannot be read: what waits is judged before anything is done."""

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.session import Session
from agent_relay.logic.hints import continue_command
from agent_relay.logic.outcome import World


def check_waiting(session: Session, agent: str, world: World) -> None:
    """Raise UntrustedDataError, with the way out, where what waits for `agent` cannot be given to it."""
    why = world.spoilt.get(agent, "")
    if agent and why:
        again = continue_command(agent, session.id, "--no-launch")
        raise UntrustedDataError(
            f"the packet that waits for {agent} cannot be used: {why}",
            hint=f"Write another one, which then counts: {again}",
        )
