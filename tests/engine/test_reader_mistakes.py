"""What an agent wrote, and no reader of ours foresaw, costs the packet that, not the session."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.catalog import AdapterCatalog, read_catalog
from agent_relay.daemon.server import Notices
from agent_relay.domain.inputs import Published
from agent_relay.domain.session import Handoff, Leg, Session
from agent_relay.domain.values import AgentName, replace
from agent_relay.engine.publishing.packet_pipeline import publish_handoff_packet
from agent_relay.engine.services import Services
from agent_relay.sources.record_dispatch import RecordDispatcher
from agent_relay.system.clock import SystemClock
from agent_relay.system.config_file import ReloadingConfig
from agent_relay.system.disk.folders import Folders
from agent_relay.system.limited_process import LimitedProcess, end_server

pytestmark = pytest.mark.size("every")

ID = "01HZZZZZZZZZZZZZZZZZZZZZZZ"
NOW = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
HANDOFF = Handoff("H1", "L1", "demo", "understudy", "manual", NOW)


@pytest.fixture(autouse=True)
def _server() -> Iterator[None]:
    yield
    end_server()


def _break_reader(loaded: LoadedAdapter) -> LoadedAdapter:
    """An agent whose records raise what no reader expects: the name of their reader is no name."""
    assert loaded.adapter.transcript is not None
    transcript = replace(loaded.adapter.transcript, reader=[])
    return replace(loaded, adapter=replace(loaded.adapter, transcript=transcript))


def test_a_reader_that_breaks_costs_the_packet_what_it_would_have_read(tmp_path: object) -> None:
    """The handoff failed and the session ended, with its agent stopped already."""
    folders, reported = Folders(f"{tmp_path}/run", f"{tmp_path}/state", f"{tmp_path}/config"), list[object]()
    adapters = dict(read_catalog(folders).adapters)
    adapters[AgentName("demo")] = _break_reader(adapters[AgentName("demo")])
    record, root = f"{tmp_path}/record.jsonl", f"{tmp_path}/project"
    os.mkdir(root)
    Path(record).write_text('{"type":"prompt","text":"paint the shed"}\n', "utf-8")
    leg = Leg("L1", "demo", 1, NOW, native_id="n", transcript=record, was_busy=True, how="stopped")
    session = Session(ID, root, root, NOW, NOW, legs=(leg,), handoff=HANDOFF)

    async def publish() -> Published:
        config, evidence = ReloadingConfig(folders.config), RecordDispatcher(lambda _: None)
        catalog = AdapterCatalog(adapters)
        services = Services(
            folders, SystemClock(), Notices(), catalog, config, UTC, evidence, reported.append
        )
        environ = {"HOME": str(tmp_path)}
        return await asyncio.to_thread(
            publish_handoff_packet, services, LimitedProcess(), session, HANDOFF, environ
        )

    done = asyncio.run(publish())
    assert done.lacks == (
        "what demo recorded is not in it: agent-relay made a mistake with it; a crash report was written"
    )
    assert done.lacks in Path(f"{root}/.agent-relay/sessions/{ID}/{done.text_path}").read_text("utf-8")
    assert len(reported) == 1
