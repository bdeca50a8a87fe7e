"""What one session's decisions wait for keeps nobody else from anything."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from agent_relay.agents.catalog import AdapterCatalog
from agent_relay.daemon.server import Notices
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body, PromptSeen
from agent_relay.domain.session import Session
from agent_relay.domain.values import UNKNOWN_OWNER, replace
from agent_relay.engine._effect_runner import EffectRunner
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.engine.sessions.registry import TreeClaims
from agent_relay.session.decision import Availability
from agent_relay.sources.record_dispatch import RecordDispatcher
from agent_relay.system.clock import SystemClock
from agent_relay.system.config_file import ReloadingConfig
from agent_relay.system.disk.folders import Folders
from tests.support.heard import in_loop, until

if TYPE_CHECKING:
    from agent_relay.engine.services import SessionHost

NOW = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SESSION = Session("S", "/nowhere", "/nowhere", NOW, NOW)
DEAD, WELL = LaunchEnvironment({"HOME": "/net/ann"}), LaunchEnvironment({"HOME": "/home/bob"})


class Net(Services, frozen=True):
    """A machine on which ann's home is a network that is down."""

    may: threading.Event = msgspec.field(default_factory=threading.Event)
    waiting: list[str] = msgspec.field(default_factory=list)

    def read_availability(self, environ: Mapping[str, str]) -> dict[str, Availability]:
        """Waits for what never answers; bob's home answers at once."""
        if environ["HOME"] == "/net/ann":
            self.waiting.append("ann")
            assert self.may.wait(60)
        return {}


def build_services(folder: object) -> Net:
    """A machine without agents; to be asked for within the loop."""
    folders = Folders(f"{folder}/run", f"{folder}/state", f"{folder}/config")
    evidence = RecordDispatcher(lambda _: None)
    followed = ReloadingConfig(folders.config)
    return Net(folders, SystemClock(), Notices(), AdapterCatalog({}), followed, UTC, evidence, lambda _: None)


def build_effect_runner(services: Services, launch: LaunchEnvironment) -> EffectRunner:
    """The runner of a session whose terminal brought `launch`."""
    host = cast("SessionHost", SimpleNamespace(session=SESSION, events=()))
    trees = TreeClaims(UNKNOWN_OWNER, lambda _: True)
    runner = EffectRunner(services, NarrativeWriter(services), trees.enter, host)
    runner.take(launch)
    return runner


@in_loop
async def test_a_home_that_hangs_keeps_no_other_session_from_its_decisions(tmp_path: object) -> None:
    """Its decisions used to take the threads all sessions share, one after another."""
    services = build_services(tmp_path)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    hung, well = build_effect_runner(services, DEAD), build_effect_runner(services, WELL)
    deciding = asyncio.create_task(hung.build_context(SESSION))
    try:
        await until(lambda: services.waiting)
        context = await asyncio.wait_for(well.build_context(SESSION), 20)
        assert context.availability == {}
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 20) == "done"
        assert not deciding.done()
    finally:
        services.may.set()
    await deciding
    await hung.close()
    await well.close()


@in_loop
async def test_a_session_that_is_not_at_work_any_more_decides_nothing(tmp_path: object) -> None:
    """Who asks in the moment it is let go of hears that, instead of a mistake of ours."""
    services = build_services(tmp_path)
    runner = build_effect_runner(services, WELL)
    await runner.close()
    with pytest.raises(RelayError, match="is not at work any more"):
        await runner.build_context(SESSION)


SECRET = "zebra-Lamp-77"
SEEN = PromptSeen("L", f"log in with {SECRET}", NOW.isoformat())


@pytest.mark.parametrize("is_named_by", ["terminal", "file"])
def test_what_is_told_before_anything_is_decided_is_journalled_without_secrets(
    tmp_path: Path, is_named_by: str
) -> None:
    """A new daemon hears of prompts before it decides anything of a session it goes on with."""
    setting = {"DB_PASSWORD": SECRET}
    if is_named_by == "file":
        (tmp_path / ".env").write_text(f"DB_PASSWORD={SECRET}\n")
        setting = {}

    async def main() -> Body:
        runner = build_effect_runner(build_services(tmp_path), WELL)
        await runner.adopt(replace(SESSION, root=str(tmp_path)))
        runner.take(LaunchEnvironment({"HOME": "/home/bob", **setting}))
        try:
            return await runner.redact(SEEN)
        finally:
            await runner.close()

    assert asyncio.run(main()) == replace(SEEN, text="log in with [redacted: known-secret]")
