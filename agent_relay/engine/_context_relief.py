"""Relieves an agent whose context is full: an early draft, a wait for a quiet moment, its own compaction."""

import asyncio
import logging
from collections.abc import Mapping

from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import CompactSkipped, LegQuiet
from agent_relay.domain.session import Session
from agent_relay.engine._timers import is_typing
from agent_relay.engine.delivery.text_delivery import type_line
from agent_relay.engine.legs.launch_environment import LaunchEnvironment
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.packet.narrative import NarrativeOutcome
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)
_WAIT_S = 900.0
"""Longest wait for a quiet moment; the end of the next turn starts another wait."""
_SETTLE_S = 1.0
"""Longest delay between the start of a turn and its first sign on the screen."""
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0


class ContextRelief:
    """Relieves full contexts of one session's legs, and keeps track of the drafts it has requested."""

    def __init__(self, narratives: NarrativeWriter, live: Mapping[str, LegMonitor]) -> None:
        self._narratives = narratives
        self._live = live
        self._waiting: set[str] = set()
        self._drafts: dict[str, asyncio.Event] = {}

    async def draft(self, session: Session, leg_id: str, launch_environment: LaunchEnvironment) -> None:
        """Have the agent write a handoff document; log a failure, since handoffs work without one."""
        live = self._live.get(leg_id)
        if live is None or leg_id in self._drafts:
            return
        over = self._drafts[leg_id] = asyncio.Event()
        try:
            if await _end_turn(live):
                result = await self._narratives.draft(session, launch_environment)
                level = logging.INFO if result.kind is NarrativeOutcome.WRITTEN else logging.WARNING
                _log.log(level, "draft session=%s outcome=%s", session.id, result.kind.value)
        except RelayError as error:
            _log.info("no-draft session=%s why=%s", session.id, type(error).__name__)
        finally:
            del self._drafts[leg_id]
            over.set()

    async def await_quiet(self, leg_id: str) -> LegQuiet | None:
        """Return `LegQuiet` once the leg waits for a prompt and nobody types; `None` if not in 15 minutes.

        Also `None` if the leg is gone, or another call already waits for it.
        """
        live = self._live.get(leg_id)
        if live is None or leg_id in self._waiting:
            return None
        self._waiting.add(leg_id)
        try:
            async with asyncio.timeout(_WAIT_S):
                if (draft := self._drafts.get(leg_id)) is not None:
                    await draft.wait()
                return LegQuiet(leg_id) if await _be_quiet(live) else None
        except (TimeoutError, RelayError):
            _log.info("never-quiet leg=%s", leg_id)
            return None
        finally:
            self._waiting.discard(leg_id)

    async def compact(self, leg_id: str) -> CompactSkipped | None:
        """Tell the agent to compact; return `CompactSkipped` if somebody began to type meanwhile.

        Raises RelayError if the agent has no such command, or its holder does not take it.
        """
        live = self._live.get(leg_id)
        if live is None:
            return None
        deliver = live.adapter.deliver
        if not deliver.compact:
            raise RelayError(f"{live.leg.agent} has no command that makes its conversation shorter")
        try:
            await type_line(live, deliver, deliver.compact)
        except HolderError as error:
            if error.why != "typed":
                raise
            return CompactSkipped(leg_id)
        return None

    def see(self, session: Session) -> None:
        """Cancel a draft that would come too late: a handoff is under way, or no leg lives."""
        if session.handoff is not None or session.living_leg is None:
            self._narratives.drop_draft(session.id)


async def _end_turn(monitor: LegMonitor) -> bool:
    """Wait for the end of the agent's turn; return whether it came while the agent lived.

    The agent's records may be ahead of its screen.
    """
    await asyncio.sleep(_SETTLE_S)
    await monitor.settle_evidence()
    is_over = await monitor.wait_until(
        lambda: monitor.gone.is_set() or monitor.state == "ready", limit_s=_WAIT_S
    )
    return is_over and not monitor.gone.is_set()


async def _be_quiet(monitor: LegMonitor) -> bool:
    """Wait until the agent waits for a prompt and nobody types; return `False` if the agent ends first.

    Work and questions are waited out: if records are ahead of the screen, nothing else would cause another
    check.
    """
    pause_s = _FIRST_PAUSE_S
    while not monitor.gone.is_set():
        await monitor.settle_evidence()
        if monitor.state in ("busy", "asking"):
            await monitor.wait_until(
                lambda: monitor.gone.is_set() or monitor.state == "ready", limit_s=_WAIT_S
            )
            pause_s = _FIRST_PAUSE_S
            continue
        if not await is_typing(monitor) and monitor.state == "ready":
            return True
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return False
