"""What one daemon handed on, the next one does not; what it did not, the next one does."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.sources.record_dispatch import SourceSet
from tests.support.heard import LIMIT_S, Heard, build_place, until

pytestmark = pytest.mark.size("test")

HOOKS = SourceSpec(role="hook", framing="jsonl", path="{leg_folder}/hooks.jsonl")
CHILD = """
import asyncio, json, os, sys
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.sources.record_dispatch import SourceSet
from tests.support.heard import build_place

folder = sys.argv[1]
spec = SourceSpec(role="hook", framing="jsonl", path="{leg_folder}/hooks.jsonl")
seen = os.open(folder + "/seen", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def keep(leg_id, records):
    line = json.dumps({"n": [record.data["n"] for record in records], "state": sources.state(leg_id)})
    os.write(seen, line.encode() + b"\\n")

async def main():
    global sources
    sources = SourceSet(keep)
    try:
        with open(folder + "/seen") as file:
            state = json.loads(file.readlines()[-1])["state"]
    except (OSError, IndexError):
        state = None
    sources.add(build_place(leg_folder=folder), [spec], state=state)
    keep("leg", [])
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_reader_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """The daemon keeps the state with what it did about the records; `kill -9` may come at any moment."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    seen = tmp_path / "seen"
    seen.touch()

    def read_seen() -> list[int]:
        return [number for line in seen.read_bytes().splitlines() for number in json.loads(line)["n"]]

    async def read_for_a_while(first: int) -> None:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, str(tmp_path), cwd=root)
        if first == 1:
            await until(seen.read_bytes)
        for number in range(first, first + 30):
            with (tmp_path / "hooks.jsonl").open("ab") as file:
                file.write(b'{"n":%d}\n' % number)
            await asyncio.sleep(0)
        await until(lambda: len(read_seen()) > first)
        child.kill()
        await child.wait()

    async def main() -> None:
        for first in (1, 31, 61, 91):
            await read_for_a_while(first)
        state = json.loads(seen.read_bytes().splitlines()[-1])["state"]
        heard = Heard()
        sources = SourceSet(heard, is_watching=False)
        sources.add(build_place(leg_folder=str(tmp_path)), [HOOKS], state=state)
        assert read_seen() + heard.numbers() == list(range(1, 121))
        await sources.close()

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))
