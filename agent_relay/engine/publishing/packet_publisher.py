"""Publishes the packets of one session one after another, each complete before the next begins."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import PacketSaved
from agent_relay.domain.inputs import Input, Published, PublishFailed
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.services import SessionHost
from agent_relay.engine.threads import finish_or_end
from agent_relay.session.decision import Outcome
from agent_relay.system.failures import find_shortage

if TYPE_CHECKING:
    from agent_relay.engine.services import Services
    from agent_relay.system.limited_process import LimitedProcess

Publish = Callable[[Session, Handoff, Mapping[str, str]], Published]
"""Makes the packet of a handoff visible, with the user's environment. Raises RelayError."""


def load_and_publish(
    services: "Services",
    building: "LimitedProcess",
    session: Session,
    handoff: Handoff,
    environ: Mapping[str, str],
) -> Published:
    """Make the handoff's packet visible; load the code for it only now, as a start would wait for it."""
    from agent_relay.engine.publishing.packet_pipeline import publish_handoff_packet

    return publish_handoff_packet(services, building, session, handoff, environ)


class PacketPublisher:
    """Publishes packets one at a time: each takes its number from those on disk, and two would take the same.

    A cancelled caller waits for what is being written, so that no other packet comes in between. `end` is
    called then: the packet need not be built to its end.
    """

    def __init__(self, publish: Publish, *, end: Callable[[], None] = lambda: None) -> None:
        self._publish = publish
        self._end = end
        self._turn = asyncio.Lock()

    async def publish(self, host: SessionHost, handoff: Handoff, environ: Mapping[str, str]) -> Input:
        """Publish the handoff's packet; return that it is visible, or why it is not."""
        try:
            async with self._turn:
                return await finish_or_end(self._end, self._publish, host.session, handoff, environ)
        except RelayError as error:
            if find_shortage(error):
                raise
            return PublishFailed(handoff.id, error.sentence)

    async def save(self, host: SessionHost, occasion: Handoff, environ: Mapping[str, str]) -> str:
        """Publish and journal a packet that belongs to no handoff.

        Returns the path of its text, relative to the session's folder. Raises RelayError if it cannot be
        written.
        """
        async with self._turn:
            done = await finish_or_end(self._end, self._publish, host.session, occasion, environ)
            saved = PacketSaved(
                done.packet,
                done.sequence,
                occasion.to_agent,
                done.json_path,
                done.text_path,
                done.fingerprint,
            )
            await host.ask(Outcome((saved,)))
        return done.text_path
