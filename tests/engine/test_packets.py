"""A session's packets are written one after another, whoever has given up waiting."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import PacketSaved
from agent_relay.domain.inputs import Input, Published, PublishFailed
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.publishing.limited_work import PacketPublisher
from agent_relay.session.decision import Outcome

NOW = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
HANDOFF = Handoff("H1", "L1", "ann", "bob", "manual", NOW)


class Host:
    """A session whose journal takes everything."""

    def __init__(self) -> None:
        self.session = Session("S", "/r", "/r", NOW, NOW)
        self.asked: list[object] = []

    async def ask(self, happened: Input | Outcome) -> Session:
        """Noted."""
        assert isinstance(happened, Outcome)
        self.asked += happened.bodies
        return self.session


class Desk:
    """Publishes once it may; `lines` is what came of it, in order."""

    def __init__(self) -> None:
        self.begun, self.may = threading.Event(), threading.Event()
        self.lines: list[str] = []

    def publish(self, _session: Session, handoff: Handoff, _environ: Mapping[str, str]) -> Published:
        """The packet is visible some time later."""
        self.lines.append(f"{handoff.id} begins")
        self.begun.set()
        assert self.may.wait(60)
        self.lines.append(f"{handoff.id} ends")
        return Published(handoff.id, "P", 1, "1.json", "1.md", "f")


def _publish(packets: PacketPublisher, host: Host) -> Awaitable[object]:
    return packets.publish(host, HANDOFF, {})


def _save(packets: PacketPublisher, host: Host) -> Awaitable[object]:
    return packets.save(host, HANDOFF, {})


@pytest.mark.parametrize("work", [_publish, _save], ids=("handoff", "by-hand"))
def test_a_packet_whose_asker_gave_up_is_whole_before_the_next_one_begins(
    work: Callable[[PacketPublisher, Host], Awaitable[object]],
) -> None:
    """A daemon that stops cancels it; what its thread goes on writing must not take the next one's number."""
    desk, host = Desk(), Host()

    async def main() -> None:
        packets = PacketPublisher(desk.publish)
        first = asyncio.ensure_future(work(packets, host))
        assert await asyncio.to_thread(desk.begun.wait, 60)
        first.cancel()
        second = asyncio.create_task(
            packets.publish(host, Handoff("H2", "L1", "ann", "bob", "manual", NOW), {})
        )
        await asyncio.wait({second}, timeout=0)
        for _ in range(10):
            await asyncio.to_thread(lambda: None)
        assert desk.lines == ["H1 begins"]
        desk.may.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert isinstance(await second, Published)

    asyncio.run(main())
    assert desk.lines == ["H1 begins", "H1 ends", "H2 begins", "H2 ends"]
    assert host.asked == []


def test_a_packet_by_hand_is_journalled_and_one_that_cannot_be_written_is_told() -> None:
    """Its number is known from then on."""
    desk, host = Desk(), Host()
    desk.may.set()

    def refuse(_session: Session, _handoff: Handoff, _environ: Mapping[str, str]) -> Published:
        raise RelayError("no room")

    async def main() -> None:
        assert await PacketPublisher(desk.publish).save(host, HANDOFF, {}) == "1.md"
        assert await PacketPublisher(refuse).publish(host, HANDOFF, {}) == PublishFailed("H1", "no room")
        with pytest.raises(RelayError, match="no room"):
            await PacketPublisher(refuse).save(host, HANDOFF, {})

    asyncio.run(main())
    assert host.asked == [PacketSaved("P", 1, "bob", "1.json", "1.md", "f")]
