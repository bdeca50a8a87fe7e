"""What the daemon does for legs under watch, and no more: settled screens, detector, readiness."""

import asyncio
import os
import sys
from datetime import UTC, datetime

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.detect.screen_state import read_state
from agent_relay.domain.values import AgentName
from agent_relay.terminal.holder_client import HolderConnection, HolderError


async def watch(leg_folder: str) -> None:
    """Follow one leg until its holder is gone."""
    rules = load_rules(load_adapter(os.path.join(find_builtin_folder(), "claude"), origin="built-in"))
    now = datetime.now(UTC)
    detector = Detector(rules, agent=AgentName("claude"), started_at=now, zone=UTC, patience_s=300)
    holder = await HolderConnection.open(leg_folder)
    await holder.watch()
    READY.release()
    async for event in holder.events():
        if event["event"] != "settled":
            continue
        try:
            screen = await holder.screen()
        except HolderError:
            return
        offset = event["offset"]
        detector.look(screen, now=datetime.now(UTC), at_offset=offset if isinstance(offset, int) else 0)
        read_state(rules, screen)


async def main(leg_folders: list[str]) -> None:
    """Follow them all; a line on standard output says that each is watched."""
    tasks = [asyncio.create_task(watch(folder)) for folder in leg_folders]
    for _ in tasks:
        await READY.acquire()
    sys.stdout.write("watching\n")
    sys.stdout.flush()
    await asyncio.gather(*tasks)


READY = asyncio.Semaphore(0)
if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
