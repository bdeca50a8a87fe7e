"""Adopting a native session relay did not start: its history becomes a new session's first leg."""

from collections.abc import Mapping

from agent_relay.app.ground import Ground
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.event import Body, LegBusy, LegEnded, LegNamed, LegStarting, SessionEnded
from agent_relay.domain.facts import NativeSession
from agent_relay.system.transcripts import find_transcript


def find_adoptable(ground: Ground, agent: str, cwd: str, environ: Mapping[str, str]) -> NativeSession:
    """The newest native session `agent` has in `cwd`. Reads disk. Raises WrongUseError where it has none."""
    spec = ground.get_adapter(agent).adapter.transcript
    found = None
    if spec is not None:
        found = find_transcript(spec, cwd=cwd, home=environ.get("HOME", ""), environ=environ)
    if found is None:
        raise WrongUseError(
            f"{agent} has no session of its own in {cwd}", hint="Leave out --from to start one"
        )
    return found


def build_history(leg: str, agent: str, native: NativeSession) -> tuple[Body, ...]:
    """What the journal says of an adopted session: a leg that worked, told its name, and is over."""
    return (
        LegStarting(leg, agent, 1, native_id=native.native_id),
        LegBusy(leg),
        LegNamed(leg, native_id=native.native_id, transcript=native.path),
        LegEnded(leg, "exited", 0),
        SessionEnded(f"adopted from {agent}"),
    )
